package problem

import (
	"fmt"
	"math"
	"testing"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/engine/site"
)

// cutShort plans a home with so little work that the search is rarely completed. It returns
// false if no plan was found.
func cutShort(t *testing.T, l *homeLine, name string) (*homeProblem, bool) {
	t.Helper()
	p, err := Decode(l.line(t, name))
	if err != nil {
		return nil, false // more load than the fuse carries
	}

	h := p.solver.(*homeProblem)
	s := site.Solver{Limit: 150}
	h.result = s.Solve(&h.Problem, &h.plans)
	if err := check.Site(&h.Problem, &h.plans, h.result); err != nil {
		t.Errorf("%s: %v", name, err)
	}

	return h, true
}

// TestHome_Polished: if a battery is the only device, even a search that is cut short finds
// the battery's exact plan. If there are cars that the battery may not serve, the plan keeps
// that rule and every other limit.
func TestHome_Polished(t *testing.T) {
	d := newHomeDraw(t, 5)
	cut := 0
	for i := range 60 {
		l := d.home("negative", 48)
		l.NoBatteryToCar = len(l.Cars) > 0
		cutShort(t, &l, fmt.Sprintf("with-%d", i))

		l.Cars, l.Tank, l.Batteries, l.NoBatteryToCar = nil, nil, l.Batteries[:1], false
		h, ok := cutShort(t, &l, fmt.Sprintf("alone-%d", i))
		if !ok {
			continue
		}
		if !h.result.Optimal {
			cut++
		}

		var w battery.Solver
		want := w.SolveStorage(storageOf(&h.Problem), make([]float64, h.Slots()))
		if math.Abs(h.result.Cost-want.Cost) > 1e-6*max(1, h.result.Gross) {
			t.Errorf("home %d: %v p, and the battery by itself %v", i, h.result.Cost, want.Cost)
		}
	}

	if cut < 10 {
		t.Errorf("only %d searches were cut short", cut)
	}
}

// storageOf returns a site whose only device is a battery.
func storageOf(p *site.Problem) *battery.Storage {
	b := &p.Batteries[0]
	return &battery.Storage{
		Import: p.Import, Export: p.Export, Load: p.Load, PV: p.PV, Curtail: p.Curtailable, Min: b.Min, Max: b.Max, Init: b.Init,
		Charge: b.Charge * p.Hours, Discharge: b.Discharge * p.Hours, ChargeEff: b.ChargeEff, DischargeEff: b.Efficient,
		Wear: b.Wear, Terminal: b.Terminal, ImportLimit: p.GridImport * p.Hours, ExportLimit: p.GridExport * p.Hours,
	}
}
