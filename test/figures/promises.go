package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// promise is a row of the README's table: what is promised, what measures it, and how its figure
// is read from what that prints.
type promise struct {
	name    string
	command string
	figure  func(printed string) (string, error)
}

var promises = []promise{
	{
		name: "nothing acknowledged is lost to SIGKILL, a database crash or a power cut",
		command: "FLEXD_CRASHES=100 go test ./test/crash -count=1 -timeout 4h -v " +
			"-run '^(TestSIGKILL|TestPostgreSQLRestarted|TestPowerCut)$'",
		figure: lostFigure,
	},
	{
		name:    "flexd, killed for good at any quarter-hour, leaves no car uncharged",
		command: "FLEXD_LONG=1 go test ./sim -count=1 -timeout 4h -v -run TestNight",
		figure:  nightFigure,
	},
	{
		name:    "the plan of a single car or battery is optimal, with its proof",
		command: "go run ./cmd/flexd bench plan",
		figure:  planFigure,
	},
	{
		name:    "a plug-in becomes a push at once",
		command: "go test ./sim -run '^$' -bench PlugInToPush -benchtime 1x",
		figure: func(printed string) (string, error) {
			return engines(
				printed,
				"PlugInToPush",
				"500",
				"p99-ms",
				"500 a second: p99 %s ms on SQLite, %s ms on PostgreSQL",
			)
		},
	},
	{
		name:    "new prices replan the fleet",
		command: "go test ./internal/control -run '^$' -bench 'Wave$' -wave 100000 -benchtime 3x",
		figure:  waveFigure,
	},
	{
		name:    "readings stream in",
		command: "go test ./internal/app -run '^$' -bench 'Readings$'",
		figure: func(printed string) (string, error) {
			return engines(
				printed,
				"Readings",
				"http",
				"readings/s",
				"%s a second on SQLite, %s on PostgreSQL",
			)
		},
	},
}

// lostFigure counts what was killed and cut. The tests fail if anything was lost. A slow machine may have killed less
// often on one engine, and a row that speaks of each is of that one.
func lostFigure(printed string) (string, error) {
	kills, err := leastOfEngines(printed, `(\d+) SIGKILLs`)
	if err != nil {
		return "", err
	}
	restarts, err := lastNumber(printed, `(\d+) immediate restarts`)
	if err != nil {
		return "", err
	}
	cuts, err := lastNumber(printed, `(\d+) power cuts`)
	if err != nil {
		return "", err
	}

	return fmt.Sprintf(
		"%s kills on each engine, %s crashes of PostgreSQL, %s power cuts: 0 lost",
		kills,
		restarts,
		cuts,
	), nil
}

// nightFigure counts nights, cars and instants. The test fails if a feasible need is not met.
func nightFigure(printed string) (string, error) {
	cars, err := lastNumber(printed, `(\d+) cars, \d+ pushes`)
	if err != nil {
		return "", err
	}
	instants, err := lastNumber(printed, `killed at (\d+) instants`)
	if err != nil {
		return "", err
	}

	return fmt.Sprintf(
		"two nights with the clock changes, %s real sessions each, %s instants: every feasible need met",
		cars,
		instants,
	), nil
}

// planFigure is the median time of the plainest car and of a battery's day. The command ends well whatever it measures,
// so that a plan that is not as near to its optimum as is promised is looked for here.
func planFigure(printed string) (string, error) {
	for line := range strings.Lines(printed) {
		if hasAll(line, []string{"excess", "MISSED"}) {
			return "", fmt.Errorf("a plan is not as near to its optimum as is promised: %s", line)
		}
	}

	var times [2]string
	for i, family := range []string{"ev-plain", "battery-convex"} {
		text, err := lastNumber(
			printed,
			family+`: median +<= \S+ µs +([0-9.]+) µs`,
		)
		if err != nil {
			return "", err
		}

		micros, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", err
		}
		times[i] = strconv.FormatFloat(micros, 'f', 1, 64)
	}

	return fmt.Sprintf(
		"an EV in %s µs, a battery's day in %s µs",
		times[0],
		times[1],
	), nil
}

// waveFigure is how long a fleet takes of which the price of one half-hour moves.
func waveFigure(printed string) (string, error) {
	changed, err := metric(printed, "Wave", "sqlite/update", "changed/op")
	if err != nil {
		return "", err
	}

	var seconds [2]string
	for i, engine := range []string{"sqlite", "postgres"} {
		took, err := metric(printed, "Wave", engine+"/update", "ns/op")
		if err != nil {
			return "", err
		}
		seconds[i] = strconv.FormatFloat(took/1e9, 'f', 1, 64)
	}

	return fmt.Sprintf(
		"100,000 cars of which %s change: %s s on SQLite, %s s on PostgreSQL",
		whole(changed),
		seconds[0],
		seconds[1],
	), nil
}

// engines puts one metric of a benchmark into a sentence, on SQLite and on PostgreSQL. Both
// lines of the benchmark have a word in their name.
func engines(printed, benchmark, word, unit, sentence string) (string, error) {
	var values [2]any
	for i, engine := range []string{"sqlite", "postgres"} {
		v, err := metric(printed, benchmark, word+"|"+engine, unit)
		if err != nil {
			return "", err
		}

		values[i] = whole(v)
		if v < 100 {
			values[i] = strconv.FormatFloat(v, 'g', 2, 64)
		}
	}

	return fmt.Sprintf(sentence, values[:]...), nil
}

// metric is the value of a unit in the last line of a benchmark whose name has all the words,
// which are apart by bars.
func metric(printed, benchmark, words, unit string) (float64, error) {
	found := false

	var (
		value float64
		err   error
	)

	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) < 4 ||
			!strings.HasPrefix(fields[0], "Benchmark"+benchmark) ||
			!hasAll(fields[0], strings.Split(words, "|")) {
			continue
		}

		for i := 2; i+1 < len(fields); i += 2 {
			if fields[i+1] != unit {
				continue
			}

			value, err = strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", fields[0], err)
			}

			found = true
		}
	}

	if !found {
		return 0, fmt.Errorf(
			"no %s of Benchmark%s with %s in\n%s",
			unit,
			benchmark,
			words,
			printed,
		)
	}

	return value, nil
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}

	return true
}

// leastOfEngines is the least of an expression's groups, which each engine prints once.
func leastOfEngines(printed, expression string) (string, error) {
	all := regexp.MustCompile(expression).FindAllStringSubmatch(printed, -1)
	if len(all) != 2 {
		return "", fmt.Errorf(
			"%d times %s, not once for each engine, in\n%s",
			len(all),
			expression,
			printed,
		)
	}

	least := math.Inf(1)
	for _, match := range all {
		n, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return "", err
		}
		least = min(least, n)
	}

	return whole(least), nil
}

// lastNumber is the group of an expression's last match.
func lastNumber(printed, expression string) (string, error) {
	all := regexp.MustCompile(expression).FindAllStringSubmatch(printed, -1)
	if len(all) == 0 {
		return "", fmt.Errorf("no %s in\n%s", expression, printed)
	}

	text := all[len(all)-1][1]
	if n, err := strconv.Atoi(text); err == nil {
		return whole(float64(n)), nil
	}

	return text, nil
}

// whole writes a number without decimals, with commas between its thousands.
func whole(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}

	return text
}
