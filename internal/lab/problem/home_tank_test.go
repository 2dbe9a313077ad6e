package problem

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// tankOracle tries every schedule of a tank at a site without other devices. It returns the
// least cost in pence, infinite if no schedule keeps the bounds.
func tankOracle(l *homeLine) float64 {
	least := math.Inf(1)
	for schedule := range 1 << len(l.Tank.Draw) {
		least = min(least, tankCost(l, schedule))
	}

	return least
}

// tankCost is the cost of one schedule, a bit for each slot.
func tankCost(l *homeLine, schedule int) float64 {
	const rounding = 1e-9
	k := l.Tank
	stored, cost, was := k.Init, 0.0, false

	for t, draw := range k.Draw {
		on := schedule>>t&1 == 1
		stored -= stored*k.Loss + draw
		net := l.Load[t] - l.PV[t]

		if on {
			stored += k.ElementKW * l.SlotHours
			net += k.ElementKW * l.SlotHours
		}

		if on && !was {
			cost += k.StartCost
		}

		was = on
		if stored < k.Min-rounding || stored > k.Max+rounding {
			return math.Inf(1)
		}

		cost += max(net, 0)*l.Import[t] - max(-net, 0)*l.Export[t]
	}

	return cost - k.Terminal*stored
}

// smallTank draws a site whose only device is a tank, with few slots and a large fuse.
// Sometimes more water is drawn than the element can heat.
func smallTank(d *homeDraw) homeLine {
	l := d.home("tank", 4+d.index(6))
	l.Batteries, l.Cars = nil, nil
	l.GridImportKW, l.GridExportKW, l.Curtailable = 30, 30, false
	l.Tank = d.tank(len(l.Load))

	for t := range l.Tank.Draw {
		l.Tank.Draw[t] = d.between(0, d.of(0.5, 2, 3.5))
	}

	if d.chance(0.2) {
		l.Tank.Max = l.Tank.Init + d.between(0, 1)
		l.Tank.Min = l.Tank.Max - d.between(0.2, 2)
	}

	l.Tank.Min = max(l.Tank.Min, 0)

	return l
}

// TestTank_Oracle: the plan of a tank without other devices costs what the best of all its
// schedules costs. Exactly those tanks are refused, with the slot, that no schedule keeps
// within its bounds.
func TestTank_Oracle(t *testing.T) {
	d := newHomeDraw(t, 14)
	var w Scratch
	planned, refused, unnamed := 0, 0, 0

	for i := range 400 {
		l := smallTank(d)
		least := tankOracle(&l)
		line := l.line(t, fmt.Sprintf("tank-%d", i))
		_, err := Decode(line)

		switch {
		case err != nil && !strings.Contains(err.Error(), "after slot "):
			t.Fatalf("%v\n%s", err, line)
		case err != nil && !math.IsInf(least, 1):
			t.Fatalf(
				"a schedule costs %v, and the tank is refused: %v\n%s",
				least,
				err,
				line,
			)
		case err != nil:
			refused++
		case math.IsInf(least, 1):
			unnamed++
		default:
			planned++

			r := planHome(t, line, &w).result
			if math.Abs(r.Cost-least) > 1e-5+1e-6*r.Gross {
				t.Errorf("cost %v, the best schedule costs %v\n%s", r.Cost, least, line)
			}
		}
	}

	t.Logf(
		"%d planned, %d refused, %d without a plan that are not refused",
		planned,
		refused,
		unnamed,
	)

	if planned < 100 || refused < 50 {
		t.Errorf(
			"%d planned and %d refused of 400: the draws try too little",
			planned,
			refused,
		)
	}
}

// TestTank_OracleFault: the comparison detects a plan that costs a penny more for each start.
func TestTank_OracleFault(t *testing.T) {
	d := newHomeDraw(t, 16)
	l := d.home("tank", 4)
	l.Tank.Min, l.Tank.Max, l.Tank.Init, l.Tank.Loss = 2, 8, 3, 0
	l.Tank.Draw = []float64{0.5, 1, 0.5, 0}

	cost := tankOracle(&l)
	l.Tank.StartCost++

	if dearer := tankOracle(&l); dearer < cost+1e-3 {
		t.Errorf("with a dearer start %v, before %v", dearer, cost)
	}
}

// TestTank_Breach: the message about a tank that cannot keep its bounds.
func TestTank_Breach(t *testing.T) {
	for name, is := range map[string]struct {
		least, most, first float64
		draw               []float64
		want               string
	}{
		"too cold": {2, 8, 3, []float64{0, 5, 0}, "after slot 1 the tank stores at most 1.000 kWh"},
		"too hot":  {2, 4, 6, []float64{1, 0, 0}, "after slot 0 the tank stores at least 5.000 kWh"},
		"coarse":   {2, 2.9, 2.5, []float64{1, 0, 0}, "after slot 0 the tank is below tank.min_kwh (2)"},
		"kept":     {2, 8, 3, []float64{0, 2, 0}, ""},
	} {
		d := newHomeDraw(t, 15)
		l := d.home("tank", 3)
		l.Tank.ElementKW, l.Tank.Loss = 3, 0
		l.Tank.Min, l.Tank.Max, l.Tank.Init = is.least, is.most, is.first
		l.Tank.Draw = is.draw
		_, err := Decode(l.line(t, name))

		switch {
		case is.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case is.want != "" && (err == nil || !strings.Contains(err.Error(), is.want)):
			t.Errorf("%s: %v, want %q", name, err, is.want)
		}
	}
}

// TestHome_LoadAboveFuse: a load that the fuse and the devices cannot serve is refused. The
// message names the slot and the fuse that would be right, and with that fuse there is a plan.
func TestHome_LoadAboveFuse(t *testing.T) {
	l := newHomeDraw(t, 17).home("tank", 3)
	l.Batteries, l.Cars, l.Tank = nil, nil, nil
	l.SlotHours, l.GridImportKW = 0.5, 4
	l.Load, l.PV = []float64{1, 3, 1}, []float64{0, 0.5, 0}

	want := "in slot 1 the load, less the roof and all that batteries and cars may give, " +
		"is 0.500 kWh above the main fuse: grid_import_kw is 4, at least 5.000 would be right"

	_, err := Decode(l.line(t, "load"))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}

	l.GridImportKW = 5

	var w Scratch
	planHome(t, l.line(t, "load"), &w)
}

// TestHome_RoofAboveExport: a roof that gives more than the home can draw or export is
// refused. The message names the slot and the export limit that would be right. With that
// limit there is a plan, and so there is if the roof can be curtailed.
func TestHome_RoofAboveExport(t *testing.T) {
	l := newHomeDraw(t, 18).home("tank", 3)
	l.Batteries, l.Cars, l.Tank = nil, nil, nil
	l.SlotHours, l.GridImportKW = 0.5, 8
	l.GridExportKW, l.Curtailable = 1, false
	l.Load, l.PV = []float64{1, 0.5, 1}, []float64{0, 2, 0}

	want := "1.000 kWh above the export limit: grid_export_kw is 1, at least 3.000 would be right"

	_, err := Decode(l.line(t, "roof"))
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "in slot 1 ") {
		t.Errorf("%v, want %q", err, want)
	}

	var w Scratch
	l.GridExportKW = 3
	planHome(t, l.line(t, "roof"), &w)

	l.GridExportKW, l.Curtailable = 1, true
	planHome(t, l.line(t, "roof"), &w)
}

// TestHome_NoPlan: a battery can take what the roof gives for one slot, but not for three, so
// there is no plan. The answer says that, and not that the plan is wrong.
func TestHome_NoPlan(t *testing.T) {
	l := newHomeDraw(t, 19).home("bat-ev", 3)
	l.Batteries, l.Cars = l.Batteries[:1], nil
	l.SlotHours, l.GridImportKW = 0.5, 8
	l.GridExportKW, l.Curtailable = 0, false
	l.Load, l.PV = []float64{0, 0, 0}, []float64{1, 1, 1}

	b := &l.Batteries[0]
	b.SoCMin, b.SoCMax = 0, 1
	b.SoCInit = 0
	b.ChargeKW, b.EffCharge = 4, 0.95

	p, err := Decode(l.line(t, "full"))
	if err != nil {
		t.Fatal(err)
	}

	var w Scratch
	p.Plan(&w)

	if err := p.Check(&w); !errors.Is(err, ErrNoPlan) || !strings.Contains(err.Error(), "in slot 0 ") {
		t.Errorf("%v", err)
	}
}
