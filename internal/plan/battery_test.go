package plan_test

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/plan"

	_ "flexd/test/seed"
	"pgregory.net/rapid"
)

// TestModes_BuysLowAndSellsHigh plans a day from noon on, of cheap nights and dear evenings.
func TestModes_BuysLowAndSellsHigh(t *testing.T) {
	home := plan.HomeBattery{Power: 3600, Capacity: 9500}
	buy, sell := make([]float64, 48), make([]float64, 48)
	load, roof := make([]flex.WattHours, 48), make([]flex.WattHours, 48)
	hour := func(i int) int { return (12 + i/2) % 24 }
	for i := range buy {
		buy[i], sell[i], load[i] = 25, 4, 200
		switch h := hour(i); {
		case h < 5:
			buy[i] = 7
		case h >= 17 && h < 19:
			sell[i] = 26
		}
	}
	p := home.Problem(buy, sell, load, roof, 6000, plan.ModeSelfUse, 6)
	modes := make([]plan.Mode, 48)
	f := new(plan.Scratch).Modes(&p, modes)
	if err := plan.CheckModes(&p, modes, f); err != nil {
		t.Fatal(err)
	}
	kinds, reasons := map[plan.Mode]bool{}, p.Reasons(modes)
	for i, m := range modes {
		kinds[m] = true
		h := hour(i)
		r := reasons[i]
		if r == plan.BuyLow && h >= 5 || r == plan.SellHigh && (h < 17 || h >= 19) {
			t.Errorf("%v at %d because %v", m, h, r)
		}
		if r == 0 || m == plan.ModeCharge && r != plan.BuyLow && r != plan.NothingToDo {
			t.Errorf("%v at %d because %v", m, h, r)
		}
	}
	if !kinds[plan.ModeCharge] || !kinds[plan.ModeDischarge] || !kinds[plan.ModeSelfUse] {
		t.Errorf("modes %v", kinds)
	}
}

// TestModes_KeepsTheLaws draws homes of all kinds, with grid limits, wear and a first slot
// of which a part is over, and spoils the plan of each.
func TestModes_KeepsTheLaws(t *testing.T) {
	var w plan.Scratch
	rapid.Check(t, func(t *rapid.T) {
		whole := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		p := plan.ModeProblem{
			Min: whole(0, 2000, "min"), Max: whole(2000, 9000, "max"), Init: whole(0, 10_000, "stored"),
			ChargeStep: whole(0, 2500, "charge"), DischargeStep: whole(0, 2500, "discharge"),
			ChargeEff: float64(whole(80, 100, "eff")) / 100, DischargeEff: float64(whole(80, 100, "eff")) / 100,
			ImportLimit: whole(0, 1, "limited") * whole(500, 4500, "import"), ExportLimit: whole(0, 1, "limited") * whole(0, 2500, "export"),
			Terminal: 6, Wear: float64(whole(0, 4, "wear")), SwitchCost: 0.1, Previous: plan.Mode(whole(0, 4, "mode")),
			FirstShare: float64(whole(0, 1800, "seconds left")) / 1800,
		}
		n := whole(1, 12, "slots")
		for range n {
			p.Import, p.Export = append(p.Import, float64(whole(-10, 40, "buy"))), append(p.Export, float64(whole(-10, 30, "sell")))
			p.Load, p.PV = append(p.Load, whole(0, 1500, "load")), append(p.PV, whole(0, 2500, "roof"))
		}
		modes := make([]plan.Mode, n)
		f := w.Modes(&p, modes)
		if err := plan.CheckModes(&p, modes, f); err != nil {
			t.Fatalf("%v\n%+v\n%v", err, p, modes)
		}
		if whole(0, 24, "prove") == 0 { // it takes longer than all the rest
			proven, proof := w.ProveModes(&p, f)
			if err := plan.CheckModesProof(&p, proven, proof); err != nil {
				t.Fatalf("%v\n%+v\n%v", err, p, modes)
			}
		}
		for i, r := range p.Reasons(modes) {
			if r == 0 || r.String() == "no reason recorded" {
				t.Fatalf("no reason for slot %d", i)
			}
		}
		switch whole(0, 2, "how") {
		case 0:
			f.Cost += 0.01
		case 1:
			f.Bound = f.Cost + 0.01
		case 2:
			modes[whole(0, n-1, "spoilt")] = 9
		}
		if plan.CheckModes(&p, modes, f) == nil {
			t.Fatalf("a spoilt plan passed: %+v\n%v", p, modes)
		}
	})
}

// The words of a battery schedule, and which of them leave the battery a choice.
func TestStepOf(t *testing.T) {
	for _, c := range []struct {
		mode    plan.Mode
		net     flex.WattHours
		want    plan.BatteryAction
		deviate bool
	}{
		{plan.ModeCharge, 5, plan.ChargeMax, false}, {plan.ModeDischarge, -5, plan.DischargeMax, false},
		{plan.ModeLock, 5, plan.AvoidExport, false}, {plan.ModeLock, -5, plan.AvoidImport, false},
		{plan.ModeFeedIn, -5, plan.AvoidImport, false}, {plan.ModeFeedIn, 5, plan.AvoidImport, false},
		{plan.ModeSelfUse, 5, plan.AvoidImport, true}, {plan.ModeSelfUse, -5, plan.AvoidExport, true},
	} {
		if got, deviate := plan.StepOf(c.mode, c.net); got != c.want || deviate != c.deviate {
			t.Errorf("%v at %d: %v, %v", c.mode, c.net, got, deviate)
		}
	}
}
