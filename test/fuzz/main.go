// Command fuzz runs every fuzz target of the module, one after the other, and ends with the first
// that fails. The input that failed is then in the package's testdata/fuzz, where the tests find it
// again; what was found to be of interest stays in Go's build cache for the next run.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("each", time.Minute, "how long each target runs")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// target is one fuzz target.
type target struct{ pkg, name string }

func run(each time.Duration) error {
	all, err := targets()
	if err != nil {
		return err
	}

	began := time.Now()
	for i, t := range all {
		out, err := exec.Command(
			"go",
			"test",
			t.pkg,
			"-run",
			"^$",
			"-fuzz",
			"^"+t.name+"$",
			"-fuzztime",
			each.String(),
		).CombinedOutput()

		if err != nil {
			return fmt.Errorf("%s of %s: %w\n%s", t.name, t.pkg, err, out)
		}

		fmt.Printf(
			"%2d of %d  %-24s %-36s %s\n",
			i+1,
			len(all),
			t.name,
			t.pkg,
			executions(out),
		)
	}

	fmt.Printf(
		"%d targets in %s: no failure\n",
		len(all),
		time.Since(began).Round(time.Second),
	)

	return nil
}

// targets lists the fuzz targets of all packages: go test prints the names of a package's, then its line.
func targets() ([]target, error) {
	out, err := exec.Command("go", "test", "-list", "^Fuzz", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the targets: %w", err)
	}

	var names []string
	var all []target
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 1 {
			names = append(names, fields[0])
			continue
		}
		if len(fields) < 2 || fields[0] != "ok" {
			continue
		}

		for _, name := range names {
			all = append(all, target{fields[1], name})
		}
		names = nil
	}

	return all, nil
}

// lastCount finds how many inputs a target was given.
var lastCount = regexp.MustCompile(`execs: (\d+)`)

func executions(out []byte) string {
	found := lastCount.FindAllSubmatch(out, -1)
	if len(found) == 0 {
		return ""
	}

	return string(found[len(found)-1][1]) + " inputs"
}
