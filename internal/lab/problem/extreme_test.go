package problem_test

import (
	"math"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"flexd/internal/lab/problem"
	_ "flexd/test/seed"
)

// factors turn a likely number into an unlikely one.
var factors = []float64{0, 1, 1, 1, 1, -1, 1e-9, 1e-4, 0.5, 3, 1000, 1e5}

// distort changes numbers anywhere in a decoded problem.
func distort(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"price_p_per_kwh", "avail_hours", "max_kw", "min_kw", "energy_kwh", "start_cost_p", "min_run_slots",
			"import_p_per_kwh", "export_p_per_kwh", "load_kwh", "pv_kwh", "soc_min_kwh", "soc_max_kwh", "soc_init_kwh", "charge_kw", "discharge_kw",
			"wear_p_per_kwh", "terminal_p_per_kwh", "grid_import_kw", "grid_export_kw", "load_wh", "pv_wh", "soc_min_wh", "soc_max_wh", "soc_init_wh",
			"charge_step_wh", "discharge_step_wh", "switch_cost_p", "ready_by_min", "pause_minutes", "charger_kw", "eff_charge", "eff_discharge"} {
			if x, ok := v[name]; ok && rapid.IntRange(0, 3).Draw(t, "touch "+name) == 0 {
				v[name] = distort(t, x)
			}
		}
		return v
	case []any:
		f := rapid.SampledFrom(factors).Draw(t, "factor")
		every := rapid.IntRange(1, 10).Draw(t, "every")
		out := make([]any, len(v))

		for i, x := range v {
			out[i] = x
			if n, ok := x.(float64); ok && i%every == 0 {
				out[i] = n * f
			}
		}
		return out
	case float64:
		return v * rapid.SampledFrom(factors).Draw(t, "factor")
	}
	return v
}

// TestProblem_Extremes distorts the samples. What is still accepted must be planned, and the
// plan must keep its rules.
func TestProblem_Extremes(t *testing.T) {
	ps, lines := samples(t)
	var w problem.Scratch
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(ps)-1).Draw(t, "sample")
		if ps[i].Family == "fleet" {
			t.Skip("fleets have their own")
		}
		var v any
		if err := json.Unmarshal(lines[i], &v); err != nil {
			t.Fatal(err)
		}

		line, err := json.Marshal(distort(t, v))
		if err != nil {
			t.Fatal(err)
		}
		p, err := problem.Decode(line)
		if err != nil {
			return
		}

		planned++
		p.Plan(&w)
		if err := p.Check(&w); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}

		// A missed kWh costs 10,000 pounds in a car's proof: little if slots are made of millionths.
		if prove := rapid.IntRange(0, 3).Draw(t, "prove") == 0; prove && ps[i].Family != "ev-switch" && ps[i].Family != "ev-minpower" {
			if _, err := p.Prove(&w); err != nil {
				t.Fatalf("%v\n%s", err, line)
			}
		}
		if a := p.Answer(); math.IsNaN(a.Cost+a.LowerBound) || math.IsInf(a.Cost+a.LowerBound, 0) {
			t.Fatalf("cost %v, bound %v\n%s", a.Cost, a.LowerBound, line)
		}
	})
	if planned < 30 {
		t.Errorf("only %d distorted problems were accepted", planned)
	}
}
