package fleet_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
	"flexd/internal/flex"
	"flexd/internal/lab/sample"
	"flexd/internal/lab/verify"
	"flexd/test/draws"
)

// exam is an instance of the exam family fleet, as its file says it.
type exam struct {
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

func (x *exam) problem() *fleet.Problem {
	p := &fleet.Problem{Slots: x.Slots, Price: x.Price, Unserved: x.Unserved, CapKW: x.Cap}
	for _, e := range x.EVs {
		ev := fleet.EV{EnergyKWh: e.Energy, MaxKW: e.MaxKW, FirstFraction: e.Fraction, PeakAdder: e.Adder, Group: e.Group, First: e.First, Last: e.Last}
		for _, t := range e.Peak {
			ev.Peak |= 1 << t
		}
		p.EVs = append(p.EVs, ev)
	}

	for _, b := range x.Batteries {
		p.Batteries = append(p.Batteries, fleet.Battery{b.Capacity, b.Init, b.Charge, b.Discharge, b.In, b.Out, b.Wear, b.Terminal, b.Group})
	}
	for _, g := range x.Groups {
		p.Groups = append(p.Groups, fleet.Group{CapKW: g.Cap})
	}
	if q := x.Position; q != nil {
		p.Position = &fleet.Position{q.KWh, q.Buy, q.Sell}
	}
	return p
}

func exams(t testing.TB) (exams []exam) {
	files, err := filepath.Glob("testdata/fleet-*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}

	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Instances []exam }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(f, err)
		}
		exams = append(exams, file.Instances...)
	}
	return exams
}

// The samples have an optimum that a linear programme found.
func TestFleet_Samples(t *testing.T) {
	for _, x := range exams(t) {
		p := x.problem()
		a, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(err)
		}

		if err := verify.Fleet(p, &a); err != nil {
			t.Errorf("%s: %v", x.ID, err)
		}
		excess := (a.Cost - x.Optimum.Cost) / x.Optimum.Gross
		if excess > 1e-6 || excess < -1e-6 || a.Bound > x.Optimum.Cost {
			t.Errorf("%s: excess %g of the turnover, bound %v, optimum %v", x.ID, excess, a.Bound, x.Optimum.Cost)
		}
	}
}

var shapes = []sample.Shape{
	{}, {EVs: 1}, {Batteries: 1}, {EVs: 50, Cap: 0.5}, {EVs: 300, Cap: 0.3}, {EVs: 200, Batteries: 50, Cap: 0.4},
	{EVs: 400, Groups: 4, GroupCap: 0.5, Cap: 0.5}, {EVs: 100, Batteries: 60, Groups: 5, GroupCap: 0.4, Cap: 0.4},
	{EVs: 300, Traded: true}, {EVs: 200, Batteries: 50, Cap: 0.5, Traded: true}, {Batteries: 40, Traded: true},
}

// Random fleets that are solved as one: nobody's rules are broken, and the bound proves
// that nothing is left to gain.
func TestFleet_Whole(t *testing.T) {
	d := random.Source(11)
	for _, shape := range shapes {
		if draws.Raced && shape.EVs >= 300 && shape.Traded {
			continue // WholeSlots has one
		}

		for range draws.IfRaced(1, 2) {
			p := sample.Fleet(&d, shape)
			a, err := fleet.Solve(p)
			if err != nil {
				t.Fatal(err)
			}

			if err := verify.Fleet(p, &a); err != nil {
				t.Errorf("%+v: %v", shape, err)
			}
			if gap := (a.Cost - a.Bound) / (1 + a.Turnover); gap > 2e-5 {
				t.Errorf("%+v: gap %g", shape, gap)
			}
		}
	}
}

// A car charges at full power in all its slots but one, or nearly so: what caps force to be
// shared is fewer partial slots than there are slots, for each group.
func TestFleet_WholeSlots(t *testing.T) {
	d := random.Source(13)
	cars := draws.IfRaced(200, 1000)
	for _, shape := range []sample.Shape{{EVs: cars, Cap: 0.35}, {EVs: cars, Cap: 0.4, Groups: 5, GroupCap: 0.45}, {EVs: cars / 2, Batteries: 40, Cap: 0.4, Traded: true}} {
		p := sample.Fleet(&d, shape)
		a, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(err)
		}

		spare := 0
		for i := range p.EVs {
			partial := 0
			for k, x := range a.EVs.Of(i) {
				if x > 1e-6 && x < p.EVs[i].Most(int(p.EVs[i].First)+k)-1e-6 {
					partial++
				}
			}
			spare += max(0, partial-1)
		}

		if most := 47 * max(1, shape.Groups); spare > most {
			t.Errorf("%+v: %d partial slots too many, at most %d are due to the caps", shape, spare, most)
		}
	}
}

// largeFleet is one large fleet in groups and its plan, made once: several tests look at it.
var largeFleet = sync.OnceValues(func() (*fleet.Problem, fleet.Plan) {
	d := random.Source(61)
	p := sample.Fleet(&d, sample.Shape{EVs: draws.IfRaced(1_000, 12_000), Cap: 0.35, Groups: draws.IfRaced(1, 3), GroupCap: 0.5})
	return p, planLarge(p)
})

// planLarge is Solve, which under the race detector takes fewer cars for a large fleet already.
func planLarge(p *fleet.Problem) fleet.Plan {
	if draws.Raced {
		return fleet.SolveLarge(p, 300)
	}
	a, err := fleet.Solve(p)
	if err != nil {
		panic(err) // the sample has a fault
	}
	return a
}

// wantLarge holds a large plan against its rules and a small gap.
func wantLarge(t *testing.T, name string, p *fleet.Problem, a *fleet.Plan) {
	t.Helper()
	if err := verify.Fleet(p, a); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if gap := (a.Cost - a.Bound) / a.Turnover; gap > 2e-4 {
		t.Errorf("%s: gap %g", name, gap)
	}
}

// A large fleet is planned at prices from a sample: the caps hold, and the gap is proven.
func TestFleet_Large(t *testing.T) {
	p, a := largeFleet()
	wantLarge(t, "in groups", p, &a)
	if draws.Raced {
		return
	}

	d := random.Source(5)
	for _, shape := range []sample.Shape{{EVs: 12_000, Cap: 0.35}, {EVs: 12_000, Cap: 0.4, Groups: 5, GroupCap: 0.45}, {EVs: 3_000, Batteries: 1_500, Cap: 0.4},
		{EVs: 12_000, Cap: 0.35, Groups: 210, Outer: 10, GroupCap: 0.5}} {
		p := sample.Fleet(&d, shape)
		a, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		wantLarge(t, fmt.Sprintf("%+v", shape), p, &a)
	}
}

// oddFleet is small and has what a sample has not: caps of zero, cars without power or
// need, prices below zero, empty batteries, groups within groups, groups of nobody.
func oddFleet(d *random.Source, negative bool) *fleet.Problem {
	pick := func(v ...float64) float64 { return v[d.Below(len(v))] }
	series := func(n int, v ...float64) []float64 {
		s := make([]float64, n)
		for t := range s {
			if s[t] = pick(v...); negative && d.Below(8) == 0 {
				s[t] = -3
			}
		}
		return s
	}

	n := 1 + d.Below(fleet.MaxSlots)
	p := &fleet.Problem{Slots: n, Price: series(n, 5, 5, 10, 12.5, 30, 0), Unserved: pick(200, 200, 20, 0)}
	groups := d.Below(5)
	for g := range groups {
		group := fleet.Group{Parent: int32(d.Below(g + 1))}
		if d.Below(3) > 0 {
			group.CapKW = oddCap(d, n)
		}
		p.Groups = append(p.Groups, group)
	}

	if d.Below(2) == 0 {
		p.CapKW = oddCap(d, n)
	}

	for range d.Below(30) {
		e := fleet.EV{
			EnergyKWh: pick(0, 1, 5, 20, 20, 500), MaxKW: pick(0, 3.6, 7.4, 11), FirstFraction: pick(0, 1e-9, 0.5, 1),
			PeakAdder: pick(0, 10, 20, -5), Peak: d.Next(), Group: int32(d.Below(max(1, groups))), First: uint8(d.Below(n)),
		}
		e.Last = e.First + uint8(d.Below(n-int(e.First)))
		p.EVs = append(p.EVs, e)
	}

	for range d.Below(6) {
		b := fleet.Battery{
			CapacityKWh: pick(0, 5, 13.5), ChargeKW: pick(0, 3.6, 5), DischargeKW: pick(0, 3.6), EffCharge: pick(0.9, 1),
			EffDischarge: pick(0.95, 1), Wear: pick(0, 1.5), Terminal: pick(0, 5, 12), Group: int32(d.Below(max(1, groups))),
		}
		b.InitKWh = b.CapacityKWh * pick(0, 0.5, 1)
		p.Batteries = append(p.Batteries, b)
	}
	if d.Below(2) == 0 {
		p.Position = &fleet.Position{KWh: series(n, 0, 5, -3, 20), Buy: series(n, 12, 20, 9), Sell: make([]float64, n)}
		for t, buy := range p.Position.Buy {
			p.Position.Sell[t] = min(buy, pick(0, 3, 9))
		}
	}
	return p
}

func oddCap(d *random.Source, n int) []float64 {
	s := make([]float64, n)
	for t := range s {
		s[t] = [...]float64{0, 5, 20, 40, 1e6}[d.Below(5)]
	}
	return s
}

// What is odd is planned all the same, and to the last penny. Only a battery that earns by
// charging and discharging at once, which the bound allows and the plan does not, leaves
// a gap, and that takes prices below zero.
func TestFleet_Odd(t *testing.T) {
	d := random.Source(21)
	for i := range draws.IfRaced(60, 400) {
		negative := i%2 == 0
		p := oddFleet(&d, negative)
		a, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(i, err)
		}

		if err := verify.Fleet(p, &a); err != nil {
			t.Errorf("fleet %d: %v", i, err)
		}
		burns := negative && len(p.Batteries) > 0
		if gap := (a.Cost - a.Bound) / (50 + a.Turnover); gap > 2e-5 && !burns || gap > 0.1 {
			t.Errorf("fleet %d: gap %g", i, gap)
		}
	}
}

func copyAnswer(a fleet.Plan) fleet.Plan {
	a.EVs = a.EVs.Clone()
	a.Batteries = slices.Clone(a.Batteries)
	for i := range a.Batteries {
		a.Batteries[i] = slices.Clone(a.Batteries[i])
	}
	a.Prices = fleet.Prices{slices.Clone(a.Prices.Market), slices.Clone(a.Prices.Cap)}
	for i := range a.Prices.Cap {
		a.Prices.Cap[i] = slices.Clone(a.Prices.Cap[i])
	}
	return a
}

// The checker lets nothing pass that is wrong with a plan or its proof.
func TestCheck_RejectsMutations(t *testing.T) {
	d := random.Source(31)
	busiest := func(a *fleet.Plan) int {
		at := 0
		for i, x := range a.EVs.All() {
			if x > a.EVs.All()[at] {
				at = i
			}
		}
		return at
	}

	mutations := map[string]func(a *fleet.Plan, p *fleet.Problem){
		"energy out of nothing":    func(a *fleet.Plan, _ *fleet.Problem) { a.EVs.All()[busiest(a)] -= 0.01 },
		"more than its power":      func(a *fleet.Plan, _ *fleet.Problem) { a.EVs.All()[busiest(a)] = 6 },
		"negative":                 func(a *fleet.Plan, _ *fleet.Problem) { a.EVs.All()[0] = -0.1 },
		"not a number":             func(a *fleet.Plan, _ *fleet.Problem) { a.EVs.All()[0] = math.NaN() },
		"a slot too few":           func(a *fleet.Plan, _ *fleet.Problem) { a.EVs = a.EVs.WithoutFirst() },
		"no battery":               func(a *fleet.Plan, _ *fleet.Problem) { a.Batteries = a.Batteries[1:] },
		"a battery out of nothing": func(a *fleet.Plan, _ *fleet.Problem) { a.Batteries[0][0] = -1.8 },
		"a battery too strong":     func(a *fleet.Plan, _ *fleet.Problem) { a.Batteries[0][5] = 3 },

		"a cheaper cost":           func(a *fleet.Plan, _ *fleet.Problem) { a.Cost -= 1 },
		"need forgotten":           func(a *fleet.Plan, _ *fleet.Problem) { a.Unserved += 1 },
		"a better bound":           func(a *fleet.Plan, _ *fleet.Problem) { a.Bound += 5 },
		"a cap's price raised":     func(a *fleet.Plan, _ *fleet.Problem) { a.Prices.Cap[0][20] += 1000 },
		"a cap's price below zero": func(a *fleet.Plan, _ *fleet.Problem) { a.Prices.Cap[0][20] = -1 },
		"a price of no cap":        func(a *fleet.Plan, p *fleet.Problem) { a.Prices.Cap[3][20] = 1 },
		"prices of another day":    func(a *fleet.Plan, _ *fleet.Problem) { a.Prices.Market[3]++ },
		"a cap lowered":            func(_ *fleet.Plan, p *fleet.Problem) { p.CapKW = flat(slices.Max(p.CapKW) * 0.95) },
		"a group's cap lowered":    func(_ *fleet.Plan, p *fleet.Problem) { p.Groups[0].CapKW = flat(slices.Max(p.Groups[0].CapKW) / 2) },
	}

	for range draws.IfRaced(1, 3) {
		p := sample.Fleet(&d, sample.Shape{EVs: 300, Batteries: 20, Groups: 2, Cap: 0.4, GroupCap: 0.5})
		p.Groups = append(p.Groups, fleet.Group{})
		good, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Fleet(p, &good); err != nil {
			t.Fatal(err)
		}

		for name, mutate := range mutations {
			a, q := copyAnswer(good), *p
			q.Groups = slices.Clone(p.Groups)
			mutate(&a, &q)
			if verify.Fleet(&q, &a) == nil {
				t.Errorf("%s: passed", name)
			}
		}

		for range 300 { // any car moved to another slot costs something else, or breaks something
			a := copyAnswer(good)
			i := d.Below(len(p.EVs))
			plan := a.EVs.Of(i)
			from, to := d.Below(len(plan)), d.Below(len(plan))
			q, first := min(plan[from], 0.5), int(p.EVs[i].First)

			if q*math.Abs(p.Price[from+first]-p.Price[to+first]) > 0.1 {
				plan[from], plan[to] = plan[from]-q, plan[to]+q
				if verify.Fleet(p, &a) == nil {
					t.Errorf("car %d moved %v kWh from %d to %d: passed", i, q, from, to)
				}
			}
		}
	}
}

// The same fleet gives the same bytes, however many processors take part.
func TestFleet_Deterministic(t *testing.T) {
	d := random.Source(41)
	cars := draws.IfRaced(64, 800)
	whole := sample.Fleet(&d, sample.Shape{EVs: cars, Batteries: cars / 16, Groups: 3, Cap: 0.4, GroupCap: 0.5, Traded: true})
	asOne := func(p *fleet.Problem) fleet.Plan {
		a, err := fleet.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	large, planned := largeFleet()
	for _, c := range []struct {
		name  string
		p     *fleet.Problem
		plan  func(*fleet.Problem) fleet.Plan
		first fleet.Plan
	}{{"as one", whole, asOne, asOne(whole)}, {"a large fleet", large, planLarge, planned}} {
		before := runtime.GOMAXPROCS(1)

		second := c.plan(c.p)
		runtime.GOMAXPROCS(before)
		if !reflect.DeepEqual(c.first, second) {
			t.Errorf("%s: %v p, then %v p", c.name, c.first.Cost, second.Cost)
		}
	}
}

// A group lies in a group: what the inner ones draw together keeps the outer cap.
func TestFleet_NestedGroups(t *testing.T) {
	d := random.Source(51)
	p := sample.Fleet(&d, sample.Shape{EVs: 400, Batteries: 30, Groups: 4, GroupCap: 0.6})
	peak := slices.Max(p.Groups[2].CapKW)
	p.Groups[2].Parent, p.Groups[3].Parent = 2, 3 // 3 lies in 2, and that in 1
	p.Groups[1].CapKW = flat(peak)
	a, err := fleet.Solve(p)
	if err != nil {
		t.Fatal(err)
	}

	if err := verify.Fleet(p, &a); err != nil {
		t.Error(err)
	}
	bound := 0.0
	for _, m := range a.Prices.Cap[2] {
		bound += m
	}
	if gap := (a.Cost - a.Bound) / a.Turnover; gap > 1e-5 || bound == 0 {
		t.Errorf("gap %g, outer cap at %v p in all", gap, bound)
	}
}

// Without any prices to start from, as if the barrier had failed, a plan still comes out
// that keeps every rule, and its bound is true.
func TestFleet_WithoutPrices(t *testing.T) {
	d := random.Source(57)
	cars := draws.IfRaced(200, 600)

	for _, shape := range []sample.Shape{{EVs: cars, Batteries: 30, Cap: 0.4, Groups: 3, GroupCap: 0.5}, {EVs: cars / 3 * 2, Cap: 0.5, Traded: true}} {
		p := sample.Fleet(&d, shape)
		first, better := fleet.SolveWithoutPrices(p)
		for _, a := range []fleet.Plan{first, better} {
			if err := verify.Fleet(p, &a); err != nil {
				t.Errorf("%+v: %v", shape, err)
			}
		}
		if before, after := first.Gap(), better.Gap(); after > 1e-3 || after > before {
			t.Errorf("%+v: gap %g, then %g", shape, before, after)
		}
	}
}

// Cars that have no two the same peak hours have no classes to share.
func TestFleet_OwnPeaks(t *testing.T) {
	if draws.Raced {
		t.Skip("one large fleet more; the plain run has it")
	}
	d := random.Source(55)
	p := sample.Fleet(&d, sample.Shape{EVs: 11_000, Batteries: 10, Cap: 0.4, Groups: 2, GroupCap: 0.5})
	for i := range p.EVs {
		p.EVs[i].Peak, p.EVs[i].PeakAdder = d.Next(), float64(1+d.Below(3))
	}

	a, err := fleet.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	wantLarge(t, "own peaks", p, &a)
}

// After a price has moved, the last prices are enough to start from, and stale or foreign
// ones do no harm.
func TestFleet_Warm(t *testing.T) {
	p, a := largeFleet()
	d := random.Source(62)
	foreign := fleet.Prices{Market: slices.Clone(a.Prices.Market), Cap: fleet.Grid(len(a.Prices.Cap), 48)}
	for v := range foreign.Cap {
		for i := range foreign.Cap[v] {
			foreign.Cap[v][i] = d.Between(-50, 300)
		}
	}

	foreign.Cap[1][7] = math.NaN()
	for name, start := range map[string]fleet.Prices{"last": a.Prices, "foreign": foreign, "short": {Market: foreign.Market}} {
		next := *p
		next.Price = slices.Clone(p.Price)
		next.Price[30] += 3
		next.Start = start
		b := planLarge(&next)
		wantLarge(t, name, &next, &b)
	}
}

func TestFleet_Faults(t *testing.T) {
	d := random.Source(71)
	good := func() *fleet.Problem {
		return sample.Fleet(&d, sample.Shape{EVs: 3, Batteries: 1, Groups: 2, GroupCap: 0.5, Cap: 0.5, Traded: true})
	}
	if err := good().Fault(); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(p *fleet.Problem){
		"no slots":       func(p *fleet.Problem) { p.Slots = 0 },
		"too many slots": func(p *fleet.Problem) { p.Slots = fleet.MaxSlots + 1 },
		"short position": func(p *fleet.Problem) { p.Position.KWh = p.Position.KWh[1:] },
		"short price":    func(p *fleet.Problem) { p.Position, p.Price = nil, p.Price[1:] },
		"selling dear":   func(p *fleet.Problem) { p.Position.Sell[4] = 1e6 },
		"a negative cap": func(p *fleet.Problem) { p.CapKW[0] = -1 },
		"no number":      func(p *fleet.Problem) { p.Groups[1].CapKW[0] = math.NaN() },
		"own parent":     func(p *fleet.Problem) { p.Groups[0].Parent = 1 },

		"no such group":    func(p *fleet.Problem) { p.EVs[0].Group = 2 },
		"window backwards": func(p *fleet.Problem) { p.EVs[0].First, p.EVs[0].Last = 5, 4 },
		"window too long":  func(p *fleet.Problem) { p.EVs[0].Last = 48 },
		"negative need":    func(p *fleet.Problem) { p.EVs[0].EnergyKWh = -1 },
		"fraction":         func(p *fleet.Problem) { p.EVs[0].FirstFraction = 1.1 },
		"overfull":         func(p *fleet.Problem) { p.Batteries[0].InitKWh = 100 },
		"no efficiency":    func(p *fleet.Problem) { p.Batteries[0].EffCharge = 0 },
		"unserved":         func(p *fleet.Problem) { p.Unserved = -1 },
	} {
		p := good()

		spoil(p)
		if _, err := fleet.Solve(p); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flat is the same cap in all slots.
func flat(kw float64) []float64 {
	return slices.Repeat([]float64{math.Round(kw*10) / 10}, 48)
}

// A panic in either half is one of whoever asked for the plan, which makes an error of it: it does not end the process.
func TestBoth_PanicTogether(t *testing.T) {
	for _, half := range []int{0, 1} {
		err := func() (err error) {
			defer flex.Recover(&err)

			fleet.Both(func(k int) {
				if k == half {
					panic("planted")
				}
			})

			return nil
		}()

		if err == nil || !strings.Contains(err.Error(), "planted") {
			t.Errorf("half %d: %v", half, err)
		}
	}
}
