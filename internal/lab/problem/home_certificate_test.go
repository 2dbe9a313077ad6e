package problem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"flexd/internal/engine/site"
	"flexd/internal/lab/verify"
)

// certified plans a home with its certificate, and returns its answer as it is written.
func certified(t testing.TB, line []byte, w *Scratch) (*Problem, []byte) {
	t.Helper()
	p, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := p.Prove(w)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}

	a := p.Answer()
	a.Certificate = certificate
	text, err := Append(nil, a)
	if err != nil {
		t.Fatal(err)
	}
	return p, text
}

// TestHome_Certificate: the bound of every sample is proven to 0.08 % of the turnover, and is
// not above the optimum. The proof is checked from the answer as it is written.
func TestHome_Certificate(t *testing.T) {
	var w Scratch
	for _, line := range homes(t) {
		var known knownHome
		if err := json.Unmarshal(line, &known); err != nil {
			t.Fatal(err)
		}
		p, answer := certified(t, line, &w)
		is, err := p.Verify(answer)
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}

		scale := max(1, known.Optimum.Gross)
		if is.GapPct > 0.08 || is.LowerBound > known.Optimum.Cost+1e-6*scale {
			t.Errorf("%s: %v is proven, a gap of %v %%; the optimum is %v", p.ID, is.LowerBound, is.GapPct, known.Optimum.Cost)
		}
		if is.LeastShortfall > known.Optimum.Shortfall+1e-9 || is.LeastShortfall < known.Optimum.Shortfall-1e-5 {
			t.Errorf("%s: a shortfall of %v is proven, the least is %v", p.ID, is.LeastShortfall, known.Optimum.Shortfall)
		}
	}
}

// TestHome_CertificateRandom: for homes of every sub-family, the bound that planning states
// has a proof.
func TestHome_CertificateRandom(t *testing.T) {
	var w Scratch
	d := newHomeDraw(t, 41)
	bytes := 0
	for i := range 2 * len(homeFamilies) {
		family := homeFamilies[i%len(homeFamilies)]
		l := d.home(family, 12)
		line := l.line(t, fmt.Sprintf("%s-%d", family, i))
		p, err := Decode(line)
		if err != nil {
			continue // more load than the fuse carries
		}

		p.Plan(&w)
		r := p.solver.(*homeProblem).result
		p, answer := certified(t, line, &w)
		bytes += len(answer)
		is, err := p.Verify(answer)
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}

		if near := 1e-6 * max(1, r.Gross); is.LowerBound < r.Bound-near || is.LowerBound > is.Cost+near {
			t.Errorf("%s: %v is proven; planning says %v, the plan costs %v", p.ID, is.LowerBound, r.Bound, is.Cost)
		}
		t.Logf("%s: a gap of %.1e of the turnover; %.1e kWh of shortfall are not proven, %.1e in peak time", p.ID, is.GapPct/100, is.Shortfall-is.LeastShortfall, is.Peak-is.LeastPeak)
	}
	t.Logf("%d kB of answers", bytes/1000)
}

// certifiedOracle checks that no proof, whatever its multipliers and branches, proves more
// than the value of the oracle's plan. It reports whether the proof reaches that value.
func (d *homeDraw) certifiedOracle(t *testing.T, line []byte, w *Scratch, shortfall, peak, cost float64) bool {
	t.Helper()
	p, answer := certified(t, line, w)
	is, err := p.Verify(answer)
	if err != nil {
		t.Errorf("%v\n%s", err, answer)
		return false
	}
	h := p.solver.(*homeProblem)
	near := 1e-5 + 1e-6*h.result.Gross // the oracle's own rounding
	if is.LowerBound > cost+near || is.LeastShortfall > shortfall+1e-6 || is.LeastPeak > peak+1e-5 {
		t.Errorf("%v p, %v and %v kWh are proven, the oracle has %v, %v and %v\n%s", is.LowerBound, is.LeastShortfall, is.LeastPeak, cost, shortfall, peak, answer)
	}

	const spare = 1e-6 // kWh, what the oracle allows itself of the first two goals and its rounding
	c := verify.NewSiteChecker(&h.Problem, shortfall+spare, peak+spare)
	root := stated(t, answer).Certificate.Site.Trees[0].Root
	for range 10 {
		tree := site.Tree{Goal: site.GoalCost, Root: d.branch(root, h, 4)}
		if bound, err := c.Tree(&tree); err == nil && bound > cost+near {
			text, _ := Append(nil, tree)
			t.Errorf("drawn multipliers prove %v, the oracle has %v\n%s", bound, cost, text)
		}
	}
	return is.LowerBound > cost-near
}

// branch draws a random tree: with changed multipliers, and with branches of any kind.
func (d *homeDraw) branch(from *site.Branch, h *homeProblem, depth int) *site.Branch {
	splits := []site.Split{site.SplitDraw, site.SplitGive, site.SplitWay, site.SplitRule, site.SplitReserve, site.SplitCount, site.SplitClass}
	b := &site.Branch{}
	if from.Dual != nil && d.chance(0.7) {
		b.Dual = from.Dual.Plus(from.Dual, d.of(-2, -0.5, 0, 0, 0.01, 1, 1e6))
		for _, y := range append(append([][]float64{b.Dual.Tank, b.Dual.Heat, b.Dual.TankCount, b.Dual.TankStart, b.Dual.HeatStart, b.Dual.Need}, b.Dual.Battery...), b.Dual.Car...) {
			if len(y) > 0 && d.chance(0.5) {
				y[d.index(len(y))] += d.of(-30, -1, 0.1, 5, 100)
			}
		}
	}

	if depth > 0 && d.chance(0.8) {
		b.Split = splits[d.index(len(splits))]
		b.Slot, b.Value = d.index(h.Slots()), d.index(h.Slots())
		b.Device = d.index(1 + len(h.Batteries) + len(h.Cars) + 2)
		b.Halves = []*site.Branch{d.branch(from, h, depth-1), d.branch(from, h, depth-1)}
	}
	return b
}

func stated(t testing.TB, answer []byte) *statedHome {
	t.Helper()
	var a statedHome
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// branches calls a function with every branch of a tree.
func branches(b *site.Branch, do func(*site.Branch)) {
	do(b)
	for _, half := range b.Halves {
		branches(half, do)
	}
}

// TestHome_CertificateFaults: an answer with one fault is refused, and the check says what is
// wrong.
func TestHome_CertificateFaults(t *testing.T) {
	var w Scratch
	found := map[string]int{}
	for _, line := range homes(t) {
		p, answer := certified(t, line, &w)
		cost := func(a *statedHome) *site.Tree {
			at := slices.IndexFunc(a.Certificate.Site.Trees, func(t site.Tree) bool { return t.Goal == site.GoalCost })
			return &a.Certificate.Site.Trees[at]
		}

		for _, f := range []struct {
			name, says string
			spoil      func(a *statedHome) bool
		}{
			{"a raised bound", "the certificate proves a bound", func(a *statedHome) bool { *a.LowerBound += 1e-6; return *a.LowerBound <= *a.Cost }},
			{"a raised bound of the tree", "the tree proves a cost", func(a *statedHome) bool {
				*a.LowerBound, cost(a).Bound = *a.Cost, *a.Cost+1e-6
				return true
			}},
			{"a changed multiplier", "the tree proves a cost", func(a *statedHome) bool {
				changed := false

				branches(cost(a).Root, func(b *site.Branch) {
					if b.Dual != nil {
						for _, y := range append(append(b.Dual.Battery, b.Dual.Car...), b.Dual.Tank, b.Dual.Heat, b.Dual.Need) {
							if len(y) > 0 {
								y[len(y)/2] += 40
								changed = true
							}
						}
					}
				})

				return changed
			}},
			{"no multipliers", "the tree proves a cost", func(a *statedHome) bool {
				branches(cost(a).Root, func(b *site.Branch) { b.Dual = nil })
				return true
			}},
			{"a half that is missing", "has 1 halves", func(a *statedHome) bool {
				root := cost(a).Root
				root.Halves = root.Halves[:max(0, len(root.Halves)-1)]

				return len(root.Halves) == 1
			}},
			{"a branch that is not gone into", "the tree proves a cost", func(a *statedHome) bool {
				root := cost(a).Root
				whole := len(root.Halves) == 0
				root.Halves = nil
				return !whole
			}},
			{"a slot that is none", "which is none", func(a *statedHome) bool {
				cost(a).Root.Slot = 1000

				return len(cost(a).Root.Halves) == 2
			}},
			{"a lower cost", "the plan costs", func(a *statedHome) bool { *a.Cost -= 0.01; *a.LowerBound -= 0.01; return true }},
			{"a smaller shortfall", "the shortfall is", func(a *statedHome) bool { *a.Shortfall -= 0.001; return true }},
			{"no certificate", "there is no certificate", func(a *statedHome) bool { a.Certificate.Site = nil; return true }},
			{"a slot too few", "not every device", func(a *statedHome) bool {
				for _, x := range [][][]float64{a.Answer.Battery, a.Answer.Car} {
					if len(x) > 0 {
						x[0] = x[0][1:]
						return true
					}
				}

				return false
			}},
		} {
			a := stated(t, answer)
			if !f.spoil(a) {
				continue
			}
			text, _ := Append(nil, a)
			if _, err := p.Verify(text); err == nil || !strings.Contains(err.Error(), f.says) {
				t.Errorf("%s with %s: %v", p.ID, f.name, err)
			}
			found[f.name]++
		}
	}

	t.Log(found)
	if len(found) != 11 {
		t.Errorf("%d kinds of faults were planted", len(found))
	}
}

// TestHome_CertificateFuse: a plan that exceeds the main fuse by 1 Wh is refused.
func TestHome_CertificateFuse(t *testing.T) {
	var w Scratch
	for _, line := range homes(t) {
		p, answer := certified(t, line, &w)
		h := p.solver.(*homeProblem)
		most := 0.0

		for t := range h.Load {
			net := h.Load[t] - h.PV[t]
			for _, x := range append(slices.Clone(h.plans.Battery), h.plans.Car...) {
				net += x[t]
			}

			if h.Tank != nil && h.plans.Tank[t] {
				net += h.Tank.Element * h.Hours
			}
			if h.Heat != nil {
				net += h.plans.Heat[t]
			}
			most = max(most, net)
		}

		for _, c := range []struct {
			over float64
			says string
		}{{0.001, "import in slot"}, {-0.001, ""}} {
			h.GridImport = (most - c.over) / h.Hours
			_, err := p.Verify(answer)
			if refused := err != nil && strings.Contains(err.Error(), "import in slot"); refused != (c.says != "") {
				t.Errorf("%s with a fuse of %v kWh less than the most: %v", p.ID, c.over, err)
			}
		}
	}
}

// TestHome_OnePower: two cars with one power each have no shortfall, and that is proven. One
// of them is full only if it discharges something first.
func TestHome_OnePower(t *testing.T) {
	l := homeLine{siteFields: newSiteFields(), Cars: []homeCar{
		{MaxKW: 3.6, MinKW: 3.6, StartCost: 1, V2G: &homeV2G{SoCArrival: 12, SoCMax: 46.8, Reserve: 23.4, Target: 29.4, DischargeKW: 5, EffCharge: 0.95, EffDischarge: 0.93, Wear: 5}},
		{MaxKW: 3.6, MinKW: 3.6, StartCost: 4, V2G: &homeV2G{SoCArrival: 44.66, SoCMax: 52, Reserve: 23, Target: 52, DischargeKW: 5, MinDischargeKW: 1.4, EffCharge: 0.9, EffDischarge: 0.9, Wear: 2}},
	}}
	l.SlotHours, l.GridImportKW, l.GridExportKW = 0.5, 23, 5
	for slot := range 16 {
		l.Import, l.Export = append(l.Import, 20+float64(slot%5)), append(l.Export, 12)
		l.Load, l.PV = append(l.Load, 0.2), append(l.PV, 0)
	}

	for k := range l.Cars {
		for range l.Load {
			l.Cars[k].AvailHours = append(l.Cars[k].AvailHours, 0.5)
		}
	}
	var w Scratch
	p, answer := certified(t, l.line(t, "one-power"), &w)
	is, err := p.Verify(answer)
	if err != nil || is.Shortfall > 1e-6 || is.GapPct > 2 {
		t.Errorf("%+v, %v", is, err)
	}
}
