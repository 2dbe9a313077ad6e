package problem

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/engine/check"
)

// knownHome is what is known of a sample's optimum.
type knownHome struct {
	Optimum struct {
		Shortfall float64 `json:"shortfall_kwh"`
		Peak      float64 `json:"peak_kwh"`
		Cost      float64 `json:"cost_p"`
		Gross     float64 `json:"gross_p"`
	} `json:"optimum"`
}

// homes reads the sample homes.
func homes(t testing.TB) []jsontext.Value {
	t.Helper()
	raw, err := os.ReadFile("testdata/homes/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Instances []jsontext.Value `json:"instances"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Instances
}

func planHome(t testing.TB, line []byte, w *Scratch) *homeProblem {
	t.Helper()
	p, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	p.Plan(w)
	if err := p.Check(w); err != nil {
		t.Fatal(err)
	}
	return p.solver.(*homeProblem)
}

// TestHome_Samples: every plan keeps its limits, has the least shortfall and peak energy, and
// is optimal or within the gap that its bound proves.
func TestHome_Samples(t *testing.T) {
	var w Scratch
	for _, line := range homes(t) {
		var known knownHome
		if err := json.Unmarshal(line, &known); err != nil {
			t.Fatal(err)
		}

		t.Run(IDOf(line), func(t *testing.T) {
			best := known.Optimum
			scale := max(1, best.Gross)
			h := planHome(t, line, &w)
			r := h.result
			if r.Shortfall > best.Shortfall+1e-5 || r.Peak > best.Peak+1e-5 {
				t.Errorf("shortfall %v and peak energy %v, where %v and %v can be had", r.Shortfall, r.Peak, best.Shortfall, best.Peak)
			}

			if r.Bound > best.Cost+1e-6*scale {
				t.Errorf("bound %v above the optimum %v", r.Bound, best.Cost)
			}
			if r.Cost > best.Cost+1e-6*scale && r.Cost > r.Bound+1e-3*scale {
				t.Errorf("cost %v of bound %v, the optimum is %v", r.Cost, r.Bound, best.Cost)
			}

			fresh := planHome(t, line, new(Scratch))
			a, _ := Append(nil, fresh.answer())
			b, _ := Append(nil, h.answer())
			if !bytes.Equal(a, b) {
				t.Error("a fresh scratch plans otherwise")
			}
			if short := r.Shortfall > 1e-5; short != (len(r.Limits) > 0) {
				t.Errorf("shortfall %v with the limits %v", r.Shortfall, r.Limits)
			}
		})
	}
}

// TestHome_PlantedFaults: the checker refuses a plan with one fault.
func TestHome_PlantedFaults(t *testing.T) {
	var w Scratch
	for _, line := range homes(t) {
		planned := planHome(t, line, &w)

		for name, spoil := range map[string]func(h *homeProblem) bool{
			"cost":      func(h *homeProblem) bool { h.result.Cost -= 0.1; return true },
			"bound":     func(h *homeProblem) bool { h.result.Bound = h.result.Cost + 0.1; return true },
			"shortfall": func(h *homeProblem) bool { h.result.Shortfall += 0.1; return true },
			"battery": func(h *homeProblem) bool {
				return len(h.plans.Battery) > 0 && add(h.plans.Battery[0], 100)
			},

			"car":  func(h *homeProblem) bool { return len(h.plans.Car) > 0 && add(h.plans.Car[0], 0.5) },
			"heat": func(h *homeProblem) bool { return h.Heat != nil && add(h.plans.Heat, -0.1) },
			"tank": func(h *homeProblem) bool {
				if h.Tank != nil {
					clear(h.plans.Tank)
				}

				return h.Tank != nil
			},
		} {
			h := planned.copyProblem()
			if !spoil(h) {
				continue
			}
			if err := check.Site(&h.Problem, &h.plans, h.result); err == nil {
				t.Errorf("%s: a wrong %s was not found", IDOf(line), name)
			}
		}
	}
}

// add changes the first slot.
func add(x []float64, by float64) bool {
	x[0] += by
	return math.Abs(by) > 0
}

// copyProblem returns the problem with its own copy of the plan.
func (h *homeProblem) copyProblem() *homeProblem {
	to := *h
	to.plans.Battery, to.plans.Car = nil, nil
	for _, x := range h.plans.Battery {
		to.plans.Battery = append(to.plans.Battery, slices.Clone(x))
	}
	for _, x := range h.plans.Car {
		to.plans.Car = append(to.plans.Car, slices.Clone(x))
	}
	to.plans.Tank, to.plans.Heat = slices.Clone(h.plans.Tank), slices.Clone(h.plans.Heat)
	return &to
}

// TestHome_OneSpeed plans a home whose car has one power and cannot take all that it needs.
// The relaxation divides what the car can take in ways that no plan has. Without the car's
// counts a search found no plan at all.
func TestHome_OneSpeed(t *testing.T) {
	d := newHomeDraw(t, 21)
	var line []byte
	for i := range 110 {
		family := homeFamilies[i%len(homeFamilies)]
		l := d.home(family, 48+48*(i/len(homeFamilies)%2))
		line = l.line(t, fmt.Sprintf("%s-%d", family, i))
	}

	p, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}

	var w Scratch
	p.Plan(&w)
	if err := p.Check(&w); err != nil {
		t.Fatal(err)
	}

	if r := p.solver.(*homeProblem).result; !r.Optimal || math.Abs(r.Shortfall-0.396) > 1e-6 {
		t.Errorf("optimal %v, cost %.3f, bound %.3f, %.3f kWh missing", r.Optimal, r.Cost, r.Bound, r.Shortfall)
	}
}
