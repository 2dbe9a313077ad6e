package problem_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/lab/problem"
)

// samples reads all sample instances: the judge's view of each, and its line.
func samples(t testing.TB) (ps []instance, lines []jsontext.Value) {
	t.Helper()
	dir := os.Getenv("FLEXD_INSTANCES") // more of them, if somebody has more
	if dir == "" {
		dir = "testdata"
	}
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sample instances: %v", err)
	}

	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Instances []jsontext.Value `json:"instances"`
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatalf("%s: %v", f, err)
		}

		for _, line := range file.Instances {
			var p instance
			if err := json.Unmarshal(line, &p); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			ps, lines = append(ps, p), append(lines, line)
		}
	}
	return ps, lines
}

// allowed returns by how many pence a family's plan may exceed the optimum. All families are
// exact except those whose search is limited.
func allowed(p *instance) float64 {
	exact := 1e-6 * max(1, math.Abs(p.Optimum.Cost))
	switch p.Family {
	case "battery-modes":
		return 0.25
	case "fleet":
		if p.Position != nil {
			return max(exact, 0.002*p.Optimum.Gross)
		}
		return max(exact, 0.0005*p.Optimum.Gross)
	}
	return exact
}

func TestJudge_StoredSolutions(t *testing.T) {
	ps, _ := samples(t)
	for _, p := range ps {
		a, ok := p.stored()
		if !ok {
			continue
		}
		if cost, err := p.judge(a); err != nil || math.Abs(cost-p.Optimum.Cost) > 1e-6*max(1, math.Abs(cost)) {
			t.Errorf("%s: cost %v, the optimum is %v: %v", p.ID, cost, p.Optimum.Cost, err)
		}
	}
}

func TestSamples_Optimal(t *testing.T) {
	ps, lines := samples(t)
	var w problem.Scratch
	planned := map[string]int{}

	for i, p := range ps {
		t.Run(p.ID, func(t *testing.T) {
			q, err := problem.Decode(lines[i])
			if err != nil {
				t.Fatal(err)
			}
			q.Plan(&w)
			q.Plan(&w) // again: a scratch that has been used plans the same
			if err := q.Check(&w); err != nil {
				t.Error(err)
			}

			line, err := problem.Append(nil, q.Answer())
			if err != nil {
				t.Fatal(err)
			}
			if fresh, err := problem.Append(nil, answerOf(t, lines[i])); err != nil || !bytes.Equal(fresh, line) {
				t.Errorf("a fresh scratch plans otherwise: %v", err)
			}

			var out struct {
				Answer reply   `json:"answer"`
				Cost   float64 `json:"cost_p"`
				Bound  float64 `json:"lower_bound_p"`
			}
			if err := json.Unmarshal(line, &out); err != nil {
				t.Fatal(err)
			}

			cost, err := p.judge(out.Answer)
			if err != nil {
				t.Fatalf("infeasible: %v", err)
			}
			slack := 1e-6 * max(1, math.Abs(p.Optimum.Cost))
			if excess := cost - p.Optimum.Cost; excess > allowed(&p) {
				t.Errorf("cost %v, the optimum is %v, an excess of %v", cost, p.Optimum.Cost, excess)
			}
			if out.Bound > p.Optimum.Cost+slack {
				t.Errorf("lower bound %v is above the optimum %v", out.Bound, p.Optimum.Cost)
			}

			if math.Abs(out.Cost-cost) > slack {
				t.Errorf("says that it costs %v, the judge says %v", out.Cost, cost)
			}
			if _, err := q.Prove(&w); err != nil {
				t.Error(err)
			}
			if proven := q.Answer().LowerBound; proven > p.Optimum.Cost+slack || proven < out.Bound || p.Family == "battery-modes" && proven < cost-0.25 {
				t.Errorf("a bound of %v is proven of %v", proven, cost)
			}
			planned[p.Family]++
		})
	}
	t.Log(planned)
}

// answerOf is the answer of a scratch that was never used.
func answerOf(t *testing.T, line []byte) problem.Answer {
	p, err := problem.Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	p.Plan(new(problem.Scratch))
	return p.Answer()
}

func TestDecode_Refuses(t *testing.T) {
	const good = `{"id":"a","family":"ev-plain","price_p_per_kwh":[1,2],"avail_hours":[0.5,0.5],"max_kw":7,"energy_kwh":3}`
	if _, err := problem.Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`}`, `} {}`, "after"},
		{`"max_kw":7`, `"max_kw":7,"max_kw":8`, "duplicate"},
		{`"max_kw":7`, `"max_kw":1e999`, "max_kw"},
		{`"max_kw":7`, `"max_kw":-7`, "max_kw"},
		{`"max_kw":7`, `"max_kw":"7"`, "/max_kw cannot be a JSON string"},
		{`[0.5,0.5]`, `[0.5]`, "avail_hours has 1 values, where 2"},
		{`[1,2]`, `[]`, "1 to 1024"},
		{`ev-plain`, `ev-fancy`, "none of battery-convex, "},
		{`"max_kw":7,"energy_kwh":3`, `"x":1`, "max_kw, energy_kwh: missing"},
		{`"max_kw":7`, `"max_kw":null`, "max_kw: missing"},
		{`[1,2]`, `[1,null]`, "/price_p_per_kwh/1 cannot be null"},
		{`[1,2]`, `[1,NaN]`, "invalid character 'N'"},
		{`[1,2]`, `7`, "/price_p_per_kwh cannot be this number"},
		{`"ev-plain"`, `"ev-tiers"`, "off_peak"},
		{good, `[]`, "the line cannot be"},
		{good, `{"id":5}`, "/id cannot be this number"},
		{good, `{"id":"a"`, "EOF"},
		{good, `{"family":"fleet","slots":1,"price_p_per_kwh":[9],"evs":[]}`, "unserved_p_per_kwh: missing"},
		{good, ``, "empty"},
		{good, " \r", "empty"},
	} {
		_, err := problem.Decode([]byte(strings.Replace(good, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want something of %q", c.to, c.from, err, c.want)
		}
	}
}

// If the greatest power is out of bounds, that is the only message: nothing is said of a least
// power that was not given.
func TestDecode_OneFault(t *testing.T) {
	const line = `{"id":"a","family":"ev-plain","price_p_per_kwh":[1,2],"avail_hours":[0.5,0.5],"max_kw":-7,"energy_kwh":3}`
	_, err := problem.Decode([]byte(line))
	if err == nil || strings.Contains(err.Error(), "min_kw") {
		t.Errorf("%v", err)
	}
}

func TestDecode_StoredBeyondCapacity(t *testing.T) {
	for _, c := range []struct {
		stored int
		ok     bool
	}{{1005, true}, {1006, false}} {
		_, err := problem.Decode(fmt.Appendf(nil, `{"family":"battery-convex","import_p_per_kwh":[30],"export_p_per_kwh":[1],"load_kwh":[1],"pv_kwh":[0],"soc_max_kwh":5,"soc_init_kwh":%d,"charge_kw":2,"discharge_kw":2,"eff_charge":1,"eff_discharge":1}`, c.stored))
		if (err == nil) != c.ok {
			t.Errorf("%d kWh: %v", c.stored, err)
		}
	}
}

// A half-hour is a slot, and a grid without a limit has none; null is no limit either.
func TestDecode_Defaults(t *testing.T) {
	for _, line := range []string{
		`{"family":"battery-convex","import_p_per_kwh":[30,10],"export_p_per_kwh":[1,1],"load_kwh":[1,0],"pv_kwh":[0,0],"soc_max_kwh":5,"soc_init_kwh":1,"charge_kw":2,"discharge_kw":2,"eff_charge":1,"eff_discharge":1,"terminal_p_per_kwh":20}`,
		`{"family":"battery-convex","slot_hours":null,"import_p_per_kwh":[30],"export_p_per_kwh":[1],"load_kwh":[9],"pv_kwh":[0],"soc_max_kwh":5,"soc_init_kwh":1,"charge_kw":2,"discharge_kw":2,"eff_charge":1,"eff_discharge":1,"grid_import_kw":null,"grid_export_kw":null}`,
		`{"family":"pause","price_p_per_kwh":[9,1],"charger_kw":7,"blocks_min":[[0,60]],"ready_by_min":60,"pause_minutes":30,"make_up":"none"}`,
		`{"family":"fleet","slots":1,"price_p_per_kwh":[9],"evs":[{"max_kw":7,"first_fraction":1,"energy_kwh":3}],"unserved_p_per_kwh":100}`,
	} {
		p, err := problem.Decode([]byte(line))
		if err != nil {
			t.Error(err)
			continue
		}
		var w problem.Scratch
		p.Plan(&w)
		if err := p.Check(&w); err != nil || !p.Answer().Feasible {
			t.Errorf("%v: %+v", err, p.Answer())
		}
	}
}

func TestIDOf(t *testing.T) {
	for line, want := range map[string]string{
		`{"family":[1,{"id":"no"}],"id":"yes","x":`: "yes",
		`{"id":7}`: "", `{"id":"a"`: "a", `nonsense`: "", ``: "", `["id","a"]`: "",
	} {
		if got := problem.IDOf([]byte(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	_, lines := samples(f)
	for _, l := range lines {
		if len(l) < 20_000 {
			f.Add([]byte(l))
		}
	}

	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 50_000 {
			return
		}
		problem.IDOf(line)
		p, err := problem.Decode(line)
		if err != nil {
			return
		}

		var w problem.Scratch
		p.Plan(&w)
		if err := p.Check(&w); err != nil {
			t.Fatal(err)
		}
		a := p.Answer()
		if math.IsNaN(a.Cost) || math.IsNaN(a.LowerBound) {
			t.Fatalf("cost %v, bound %v", a.Cost, a.LowerBound)
		}
		if _, err := problem.Append(nil, a); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	ps, lines := samples(b)
	var w problem.Scratch
	for i, p := range ps {
		q, err := problem.Decode(lines[i])
		if err != nil {
			continue
		}

		b.Run(fmt.Sprintf("%s/%s", p.Family, p.ID), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.Plan(&w)
			}
		})
	}
}
