package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"flexd/internal/lab/problem"
)

const simple = `{"id":"%s","family":"ev-plain","price_p_per_kwh":[9,5,7],"avail_hours":[0.5,0.5,0.5],"max_kw":7,"energy_kwh":5}`

// ask plans the lines of in and returns the lines of the answer, decoded.
func ask(t *testing.T, in string) (out []map[string]any) {
	t.Helper()
	var b bytes.Buffer
	if err := planLines(t.Context(), strings.NewReader(in), &b, 2, true); err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(b.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, v)
	}
	return out
}

func TestPlan_ABadLineDoesNotStopTheRest(t *testing.T) {
	out := ask(t, fmt.Sprintf(simple, "a")+"\r\n\n{\"id\":\"b\",\"family\":\"ev-plain\"}\nnonsense\n"+fmt.Sprintf(simple, "c"))
	if len(out) != 5 {
		t.Fatalf("%d lines out", len(out))
	}

	for i, want := range []struct {
		id any
		ok bool
	}{{"a", true}, {nil, false}, {"b", false}, {nil, false}, {"c", true}} {
		_, refused := out[i]["error"]
		if out[i]["id"] != want.id || refused == want.ok {
			t.Errorf("line %d is %v", i, out[i])
		}
	}
	if a := out[0]; a["cost_p"] != 28.0 || a["lower_bound_p"] != 28.0 || a["feasible"] != true || fmt.Sprint(a["answer"]) != "map[kwh:[0 3.5 1.5]]" {
		t.Errorf("answered %v", a)
	}
}

func TestPlan_Certificate(t *testing.T) {
	out := ask(t, fmt.Sprintf(simple, "a")+"\n"+strings.Replace(fmt.Sprintf(simple, "b"), "ev-plain", "ev-switch", 1))
	if c := fmt.Sprint(out[0]["certificate"]); c != "map[threshold_p_per_kwh:7]" {
		t.Errorf("of a car that takes any power: %s", c)
	}
	if c := out[1]["certificate"].(map[string]any); len(c) != 1 || len(c["wanted"].([]any)) != 4 || out[1]["unproven"] != nil {
		t.Errorf("of a car with starts to pay: %v, %v", c, out[1]["unproven"])
	}
}

func TestPlan_LineLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 128 MiB")
	}

	line := fmt.Sprintf(simple, "a")
	for _, c := range []struct {
		length  int
		refused bool
	}{{problem.MaxLine - 1, false}, {problem.MaxLine, false}, {problem.MaxLine + 1, true}} {
		out := ask(t, line+strings.Repeat(" ", c.length-len(line))+"\n"+fmt.Sprintf(simple, "b"))
		if _, refused := out[0]["error"]; refused != c.refused || len(out) != 2 || out[1]["id"] != "b" {
			t.Errorf("a line of %d bytes: %v", c.length, out)
		}
	}
}

// TestPlan_Check: a home's answer with its certificate is accepted, and one with a raised
// figure is not.
func TestPlan_Check(t *testing.T) {
	const home = `{"id":"h","family":"home","slot_hours":0.5,"import_p_per_kwh":[30,10,20],"export_p_per_kwh":[15,15,15],"load_kwh":[0.4,0.3,0.5],"pv_kwh":[0,0.2,0],
"grid_import_kw":5,"grid_export_kw":3,"cars":[{"avail_hours":[0.5,0.5,0.5],"max_kw":3,"min_kw":1.4,"start_cost_p":1,"energy_kwh":2}]}`
	line := strings.ReplaceAll(home, "\n", "") + "\n"
	var answers, out bytes.Buffer
	if err := planLines(t.Context(), strings.NewReader(line), &answers, 1, true); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name, answers, says string
		holds               bool
	}{
		{"as it was made", answers.String(), `"holds":true`, true},
		{"with a byte order mark", "\ufeff" + answers.String(), `"holds":true`, true},
		{"a raised bound", strings.Replace(answers.String(), `"lower_bound_p":`, `"lower_bound_p":51,"was":`, 1), "proves a bound", false},
		{"none", "", "cannot be read", false},
		{"one more than problems", strings.Repeat(answers.String(), 2), `"holds":true`, false},
	} {
		out.Reset()
		err := verifyLines(
			t.Context(),
			strings.NewReader(line),
			strings.NewReader(c.answers),
			&out,
		)
		if (err == nil) != c.holds || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %v, %s", c.name, err, out.String())
		}
	}
}

// TestPlan_CheckFails: an answer that does not hold is a failure, and no wrong use.
func TestPlan_CheckFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plans.ndjson")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	code := run(
		t.Context(),
		[]string{"plan", "--check", file},
		console{in: strings.NewReader(fmt.Sprintf(simple, "a") + "\n"), out: &out, err: &out},
	)
	if code != exitFailed || !strings.Contains(out.String(), "1 of 1 answers do not hold") {
		t.Errorf("%d %s", code, out.String())
	}
}

// TestPlan_ByteOrderMark: a file may begin with the mark that some editors write, and may have
// it in the middle if it was joined from two.
func TestPlan_ByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	out := ask(t, mark+fmt.Sprintf(simple, "a")+"\n"+mark+fmt.Sprintf(simple, "b")+"\n"+mark)
	if len(out) != 2 || out[0]["cost_p"] != 28.0 || out[1]["cost_p"] != 28.0 {
		t.Errorf("%v", out)
	}
}
