package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// fleetExam is an instance of the exam family fleet, as its file says it.
type fleetExam struct {
	ID       string
	Slots    int
	Price    []float64 `json:"price_p_per_kwh"`
	Unserved float64   `json:"unserved_p_per_kwh"`
	Cap      []float64 `json:"cap_kw"`
	EVs      []struct {
		First    uint8   `json:"first_slot"`
		Last     uint8   `json:"last_slot"`
		Fraction float64 `json:"first_fraction"`
		MaxKW    float64 `json:"max_kw"`
		Energy   float64 `json:"energy_kwh"`
		Group    int32
		Peak     []int   `json:"peak_slots"`
		Adder    float64 `json:"peak_adder_p"`
	}
	Batteries []struct {
		Capacity  float64 `json:"capacity_kwh"`
		Init      float64 `json:"soc_init_kwh"`
		Charge    float64 `json:"charge_kw"`
		Discharge float64 `json:"discharge_kw"`
		In        float64 `json:"eff_charge"`
		Out       float64 `json:"eff_discharge"`
		Wear      float64 `json:"wear_p_per_kwh"`
		Terminal  float64 `json:"terminal_p_per_kwh"`
		Group     int32
	}
	Groups []struct {
		Cap []float64 `json:"cap_kw"`
	}
	Position *struct {
		KWh  []float64 `json:"kwh"`
		Buy  []float64 `json:"buy_p"`
		Sell []float64 `json:"sell_p"`
	}
	Optimum struct {
		Cost  float64 `json:"cost_p"`
		Gross float64 `json:"gross_p"`
	}
}

func (x *fleetExam) problem() *FleetProblem {
	p := &FleetProblem{Slots: x.Slots, Price: x.Price, Unserved: x.Unserved, CapKW: x.Cap}
	for _, e := range x.EVs {
		ev := FleetEV{EnergyKWh: e.Energy, MaxKW: e.MaxKW, FirstFraction: e.Fraction, PeakAdder: e.Adder, Group: e.Group, First: e.First, Last: e.Last}
		for _, t := range e.Peak {
			ev.Peak |= 1 << t
		}
		p.EVs = append(p.EVs, ev)
	}
	for _, b := range x.Batteries {
		p.Batteries = append(p.Batteries, FleetBattery{b.Capacity, b.Init, b.Charge, b.Discharge, b.In, b.Out, b.Wear, b.Terminal, b.Group})
	}
	for _, g := range x.Groups {
		p.Groups = append(p.Groups, FleetGroup{CapKW: g.Cap})
	}
	if q := x.Position; q != nil {
		p.Position = &FleetPosition{q.KWh, q.Buy, q.Sell}
	}
	return p
}

func fleetExams(t testing.TB) (exams []fleetExam) {
	files, err := filepath.Glob("testdata/fleet-*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Instances []fleetExam }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(f, err)
		}
		exams = append(exams, file.Instances...)
	}
	return exams
}

// The samples have an optimum that a linear programme found.
func TestFleet_Samples(t *testing.T) {
	for _, x := range fleetExams(t) {
		p := x.problem()
		a, err := Fleet(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := FleetCheck(p, &a); err != nil {
			t.Errorf("%s: %v", x.ID, err)
		}
		excess := (a.Cost - x.Optimum.Cost) / x.Optimum.Gross
		if excess > 1e-6 || excess < -1e-6 || a.Bound > x.Optimum.Cost {
			t.Errorf("%s: excess %g of the turnover, bound %v, optimum %v", x.ID, excess, a.Bound, x.Optimum.Cost)
		}
	}
}

var fleetShapes = []FleetShape{
	{}, {EVs: 1}, {Batteries: 1}, {EVs: 50, Cap: 0.5}, {EVs: 300, Cap: 0.3}, {EVs: 200, Batteries: 50, Cap: 0.4},
	{EVs: 400, Groups: 4, GroupCap: 0.5, Cap: 0.5}, {EVs: 100, Batteries: 60, Groups: 5, GroupCap: 0.4, Cap: 0.4},
	{EVs: 300, Traded: true}, {EVs: 200, Batteries: 50, Cap: 0.5, Traded: true}, {Batteries: 40, Traded: true},
}

// Random fleets that are solved as one: nobody's rules are broken, and the bound proves
// that nothing is left to gain.
func TestFleet_Whole(t *testing.T) {
	d := FleetDice(11)
	for _, shape := range fleetShapes {
		for range 3 {
			p := FleetSample(&d, shape)
			a, err := Fleet(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := FleetCheck(p, &a); err != nil {
				t.Errorf("%+v: %v", shape, err)
			}
			if gap := (a.Cost - a.Bound) / (1 + a.Turnover); gap > 2e-5 {
				t.Errorf("%+v: gap %g", shape, gap)
			}
		}
	}
}

// A crowd is planned at prices from a sample: the caps hold, and the gap is proven.
func TestFleet_Crowd(t *testing.T) {
	d := FleetDice(5)
	for _, shape := range []FleetShape{{EVs: 6_000, Cap: 0.35}, {EVs: 6_000, Cap: 0.4, Groups: 5, GroupCap: 0.45}} {
		p := FleetSample(&d, shape)
		a, err := Fleet(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := FleetCheck(p, &a); err != nil {
			t.Errorf("%+v: %v", shape, err)
		}
		if gap := (a.Cost - a.Bound) / a.Turnover; gap > 2e-4 {
			t.Errorf("%+v: gap %g", shape, gap)
		}
	}
}
