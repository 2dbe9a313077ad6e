package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/guide"
	"flexd/internal/ocpp"
	"flexd/test/port"
)

// asProgram has the test's own binary be the program, for the pages' examples.
const asProgram = "FLEXD_TEST_AS_PROGRAM"

// programAhead is by how much that program's clock is ahead of the true one.
const programAhead = "FLEXD_TEST_AHEAD"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if ahead, err := time.ParseDuration(os.Getenv(programAhead)); err == nil {
			clock = func() time.Time { return time.Now().Add(ahead) }
		}
		main()
	}

	// A test that starts this binary without asking for the program would start all tests
	// again.
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		fmt.Fprintf(os.Stderr, "%q is a command of the program: set %s\n", os.Args[1], asProgram)
		os.Exit(1)
	}

	os.Exit(m.Run())
}

// TestGuides runs every example of every page as its reader would. It uses one folder, one
// terminal for examples that follow each other, and one more for each that keeps running. It
// compares the output with the page. On a page, "…" means text that differs each time, or, on
// a line of its own, lines that may be missing.
func TestGuides(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "python3")
	for _, p := range guide.Pages {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range read(t, p, t.TempDir(), 0) {
				t.Error(fault)
			}
		})
	}
}

// TestEveryHour follows guides one after another in one folder, as somebody does who begins at
// any time of any day. It begins at 12 times of an ordinary day and of the days on which the
// clocks change, with the quickstart and another guide each. FLEXD_LONG runs all guides at 48
// times on each of the days.
func TestEveryHour(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "python3")
	days := []time.Time{
		time.Date(2027, 1, 20, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 3, 28, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 10, 31, 0, 0, 0, 0, time.UTC),
	}

	const starts = 48
	every, last := 4, starts
	long := os.Getenv("FLEXD_LONG") != ""
	if long {
		every, last = 1, starts*len(days)
	}

	for i := 0; i < last; i += every {
		pages := guide.Pages
		if !long {
			pages = []guide.Page{pages[0], pages[1+i/every%(len(pages)-1)]}
		}

		start := days[(i+i/starts)%len(days)].Add(time.Duration(i%starts*30+i*7%30) * time.Minute)
		t.Run(start.Format("0102T1504"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, p := range pages {
				for _, fault := range read(t, p, dir, time.Until(start).Round(time.Second)) {
					t.Errorf("%s: %s", p.Name, fault)
				}
			}
		})
	}
}

// A page whose example fails, or says something else than it does, is found out.
func TestGuides_Broken(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	for name, source := range map[string]string{
		"a command that fails":        "```sh\nfalse\n```\n",
		"another answer":              "```sh\necho yes\n```\n```output\nno\n```\n",
		"a line too few":              "```sh\necho a; echo b\n```\n```output\na\n```\n",
		"another line between":        "```sh\necho a; echo b\n```\n```output\na\n…\nc\n```\n",
		"another field":               "```sh\necho '{\"a\": 1}'\n```\n```json\n{\"b\": 1}\n```\n",
		"another value":               "```sh\necho '{\"a\": [1, 2]}'\n```\n```json\n{\"a\": [1, 3]}\n```\n",
		"a terminal that ends":        "```sh terminal x\ntrue\n```\n```output x\nlistening\n```\n",
		"a body that is none":         "```json profile\n{\"connectorId\": \"one\"}\n```\n",
		"an example of no known kind": "```ruby\nputs 1\n```\n",
		"a line that came once":       "```sh terminal x\necho a1; sleep 1\n```\n```output x\na…\na…\n```\n",
		"what another terminal set":   "```sh\nexport A=1\n```\n```sh terminal x\necho listening $A\nsleep 60\n```\n```output x\nlistening 1\n```\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if faults := read(t, guide.Page{Name: "broken", Source: source}, t.TempDir(), 0); len(faults) == 0 {
				t.Error("it passed")
			}
		})
	}

	between := guide.Page{Name: "between", Source: "```sh\necho a; echo b; echo c\n```\n```output\na\n…\nc\n```\n```sh\necho a; echo c\n```\n```output\na\n…\nc\n```\n"}
	if faults := read(t, between, t.TempDir(), 0); faults != nil {
		t.Error(faults)
	}
	if faults := read(t, guide.Page{Name: "whole", Source: "```sh\nA=1; echo $A and more\n```\n```output\n1 and …\n```\n```sh\necho '{\"a\": \"x1\"}'\n```\n```json\n{\"a\": \"x…\"}\n```\n"}, t.TempDir(), 0); faults != nil {
		t.Error(faults)
	}
}

// A guide that is right only at some hours is detected: without the step to the evening, the
// quickstart's car arrives when no cheap hours are left.
func TestEveryHour_TooLate(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "python3")
	const turn = `-d '{"local_time": "18:00"}'`
	p := guide.Pages[0]
	if !strings.Contains(p.Source, turn) {
		t.Fatal("the quickstart turns no clock")
	}

	p.Source = strings.Replace(p.Source, turn, `-d '{"advance": "PT1S"}'; PATIENCE=400`, 1)
	late := time.Date(2027, 1, 20, 6, 0, 0, 0, time.UTC)
	faults := read(t, p, t.TempDir(), time.Until(late).Round(time.Second))
	if !strings.Contains(strings.Join(faults, "\n"), "from second 0 at most 0.0 W") {
		t.Errorf("it failed with %q", faults)
	}
}

// walkthrough is a page being followed.
type walkthrough struct {
	t         *testing.T
	dir       string
	ahead     time.Duration // of the true clock
	ports     *strings.Replacer
	script    strings.Builder
	shown     []shown
	last      string // the foreground example that an answer is of
	terminals map[string]string
	faults    []string
}

// shown is what a page says that an example prints.
type shown struct {
	guide.Block
	file string
}

// read follows a page in a folder, by clocks that are ahead, and returns where it is wrong.
func read(t *testing.T, p guide.Page, dir string, ahead time.Duration) []string {
	t.Helper()
	r := &walkthrough{t: t, dir: dir, ahead: ahead, terminals: map[string]string{}}
	var ports []string
	for _, usual := range []int{8080, 8887, 8888, 9000} {
		free := freePort(t)
		ports = append(ports, port.Address(usual), port.Address(free))
		ports = append(ports, fmt.Sprintf(`("127.0.0.1", %d)`, usual), fmt.Sprintf(`("127.0.0.1", %d)`, free))
	}

	r.ports = strings.NewReplacer(ports...)
	r.prepare()
	r.script.WriteString(prologue)
	for i, b := range p.Blocks() {
		r.take(fmt.Sprintf("example%d", i), b)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "bash", "-c", r.ports.Replace(r.script.String()))
	run.Dir, run.WaitDelay = r.dir, 10*time.Second
	run.Env = []string{"PATH=" + r.dir + ":" + os.Getenv("PATH"), "HOME=" + r.dir, "TZ=UTC"}

	if out, err := run.CombinedOutput(); err != nil {
		r.fault("%v: %s", err, out)
		if at, err := os.ReadFile(r.file("stopped")); err == nil {
			said, _ := os.ReadFile(r.file(strings.TrimSpace(string(at))))
			r.fault("in %s: %s", at, said)
		}
		return r.faults
	}

	for _, s := range r.shown {
		r.compare(s)
	}
	return r.faults
}

func (r *walkthrough) file(name string) string { return filepath.Join(r.dir, name) }

func (r *walkthrough) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// addresses are those at which programs listen that are not given any.
const addresses = "FLEXD_LISTEN=127.0.0.1:8080 FLEXD_OCPP_FLEXD=http://127.0.0.1:8080 FLEXD_OCPP_LISTEN=127.0.0.1:8887 FLEXD_OCPP_ENDPOINT_LISTEN=127.0.0.1:8888"

// prologue is run before the examples. await waits until a terminal shows a line, after the
// line that it waited for before. It ends the page if that terminal has ended or the wait
// takes far too long.
const prologue = `set -eum # a group of processes for each terminal, to be ended with all that it started
pids=()
trap 'for p in ${pids[@]}; do kill -- -$p 2>/dev/null || true; done; wait' EXIT
shows() { # terminal, pid, pattern
	local from line
	eval "from=\${after_$2:-1}"
	line=$(tail -n "+$from" "$1" | grep -nE -m1 "$3" | cut -d: -f1)
	[ -n "$line" ] && eval "after_$2=$((from+line))"
}
await() { # terminal, pid, pattern
	for i in $(seq ${PATIENCE:-3600}); do
		shows "$@" && return
		kill -0 "$2" 2>/dev/null || { shows "$@" && return; echo "$1" >stopped; exit 1; }
		sleep 0.05
	done
	echo "$1" >stopped; exit 1
}
`

// prepare puts a program and a go command that makes it into the folder's path.
func (r *walkthrough) prepare() {
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		python = "false" // the page's examples do not need it, or fail
	}

	for name, text := range map[string]string{
		"flexd.made":       "#!/bin/sh\nexport " + asProgram + "=1 " + programAhead + "=" + r.ahead.String() + "\nexec " + self + ` "$@"` + "\n",
		"python3":          "#!/bin/sh\nexport PYTHONPATH=" + r.dir + "\nexec " + python + ` "$@"` + "\n",
		"sitecustomize.py": fmt.Sprintf("import time\ntrue = time.time\ntime.time = lambda: true() + %f\n", r.ahead.Seconds()),
		"go":               "#!/bin/sh\n[ \"$*\" = 'build -o flexd ./cmd/flexd' ] && exec cp flexd.made flexd\necho \"not built: $*\"; exit 1\n",
	} {
		if err := os.WriteFile(r.file(name), []byte(text), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
}

// take adds an example to the script, or to what is to be compared.
func (r *walkthrough) take(name string, b guide.Block) {
	words := append(strings.Fields(b.Info), "", "")
	switch kind, of := words[0], words[1]; {
	case kind == "sh" && of == "terminal":
		terminal := words[2]
		r.write(name+".sh", "set -eu\n"+b.Text)
		fmt.Fprintf(&r.script, "env -i PATH=\"$PATH\" HOME=\"$HOME\" TZ=UTC %s bash %s.sh >%s 2>&1 & pids+=($!); pid_%s=$!\n", addresses, name, name, terminal)
		r.terminals[terminal], r.last = name, ""
	case kind == "sh":
		r.last = name

		fmt.Fprintf(&r.script, "echo %s >stopped; exec 3>&1 >%s 2>&1\n%s\nexec >&3 2>&3; rm stopped\n", name, name, b.Text)
	case kind == "python":
		r.write(of, b.Text)
	case kind == "output" && of != "":
		for line := range strings.Lines(b.Text) {
			fmt.Fprintf(&r.script, "await %s $pid_%s '%s'\n", r.terminals[of], of, strings.ReplaceAll(pattern(r.ports.Replace(strings.TrimSuffix(line, "\n"))), "'", `'\''`))
		}
	case kind == "output" && r.last != "", kind == "json" && of == "" && r.last != "":
		r.shown = append(r.shown, shown{b, r.last})

		r.last = ""
	case kind == "json" && of == "profile":
		if _, err := ocpp.Parse([]byte(b.Text)); err != nil {
			r.fault("line %d: no charging profile: %v", b.Line, err)
		}
	default:
		r.fault("line %d: an example of no known kind: %s", b.Line, b.Info)
	}
}

func (r *walkthrough) write(name, text string) {
	if err := os.WriteFile(r.file(name), []byte(r.ports.Replace(text)), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// pattern matches a line of a page, with something for each "…".
func pattern(line string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".+") + "$"
}

// compare compares what an example printed with the page.
func (r *walkthrough) compare(s shown) {
	b, err := os.ReadFile(r.file(s.file))
	if err != nil {
		r.t.Fatal(err)
	}

	want := r.ports.Replace(s.Text)
	if s.Info == "output" {
		lines := strings.ReplaceAll(regexp.QuoteMeta(want), "\n…\n", "\n(.+\n)*") // a line of it alone: as many as come, or none
		if !regexp.MustCompile("^" + strings.ReplaceAll(lines, "…", ".+") + "\n?$").MatchString(strings.TrimSuffix(string(b), "\n") + "\n") {
			r.fault("line %d: it says\n%s\nand not\n%s", s.Line, b, want)
		}
		return
	}
	var got, said any
	if json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte(want), &said) != nil || !alike(said, got) {
		r.fault("line %d: it says\n%s\nand not\n%s", s.Line, b, want)
	}
}

// alike reports whether a JSON value is as a page has it.
func alike(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(want) != len(got) {
			return false
		}

		for name, v := range want {
			if other, there := got[name]; !there || !alike(v, other) {
				return false
			}
		}
		return true
	case []any:
		got, ok := got.([]any)
		if !ok || len(want) != len(got) {
			return false
		}

		for i, v := range want {
			if !alike(v, got[i]) {
				return false
			}
		}
		return true
	case string:
		text, ok := got.(string)
		return ok && regexp.MustCompile(pattern(want)).MatchString(text)
	}
	return want == got
}

// needs skips the test where a program is missing, or fails it when FLEXD_TEST_STRICT is set.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil && os.Getenv("FLEXD_TEST_STRICT") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	p, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
