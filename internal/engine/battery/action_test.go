package battery_test

import (
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/verify"
	_ "flexd/test/seed"
)

// TestModes_BuysLowAndSellsHigh plans a day from noon on, of cheap nights and dear evenings.
func TestModes_BuysLowAndSellsHigh(t *testing.T) {
	home := home.Battery{Power: 3600, Capacity: 9500}
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

	p := home.Problem(buy, sell, load, roof, 6000, battery.ModeSelfUse, 6)
	modes := make([]battery.Mode, 48)
	f := new(battery.Solver).SolveModes(&p, modes)
	if err := check.Modes(&p, modes, f); err != nil {
		t.Fatal(err)
	}

	kinds, reasons := map[battery.Mode]bool{}, p.Reasons(modes)
	for i, m := range modes {
		kinds[m] = true
		h := hour(i)
		r := reasons[i]
		if r == battery.BuyLow && h >= 5 || r == battery.SellHigh && (h < 17 || h >= 19) {
			t.Errorf("%v at %d because %v", m, h, r)
		}
		if r == 0 || m == battery.ModeCharge && r != battery.BuyLow && r != battery.NothingToDo {
			t.Errorf("%v at %d because %v", m, h, r)
		}
	}

	if !kinds[battery.ModeCharge] || !kinds[battery.ModeDischarge] || !kinds[battery.ModeSelfUse] {
		t.Errorf("modes %v", kinds)
	}
}

// TestModes_KeepsTheLaws draws homes of all kinds, with grid limits, wear and a first slot
// of which a part is over, and spoils the plan of each.
func TestModes_KeepsTheLaws(t *testing.T) {
	var w battery.Solver
	rapid.Check(t, func(t *rapid.T) {
		whole := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		p := battery.ModeProblem{
			Min: whole(0, 2000, "min"), Max: whole(2000, 9000, "max"), Init: whole(0, 10_000, "stored"),
			ChargeStep: whole(0, 2500, "charge"), DischargeStep: whole(0, 2500, "discharge"),
			ChargeEff: float64(whole(80, 100, "eff")) / 100, DischargeEff: float64(whole(80, 100, "eff")) / 100,
			ImportLimit: whole(0, 1, "limited") * whole(500, 4500, "import"), ExportLimit: whole(0, 1, "limited") * whole(0, 2500, "export"),
			Terminal: 6, Wear: float64(whole(0, 4, "wear")), SwitchCost: 0.1, ReturnCost: float64(whole(0, 1, "return")) / 10, Previous: battery.Mode(whole(0, 4, "mode")),
			FirstShare: float64(whole(0, 1800, "seconds left")) / 1800,
		}
		n := whole(1, 12, "slots")
		for range n {
			p.Import, p.Export = append(p.Import, float64(whole(-10, 40, "buy"))), append(p.Export, float64(whole(-10, 30, "sell")))
			p.Load, p.PV = append(p.Load, whole(0, 1500, "load")), append(p.PV, whole(0, 2500, "roof"))
		}

		modes := make([]battery.Mode, n)
		f := w.SolveModes(&p, modes)
		if err := check.Modes(&p, modes, f); err != nil {
			t.Fatalf("%v\n%+v\n%v", err, p, modes)
		}
		if whole(0, 24, "prove") == 0 { // it takes longer than all the rest
			proven, proof := certificate.OfModes(&p, f)
			if err := verify.ModesProof(&p, proven, proof); err != nil {
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
		if check.Modes(&p, modes, f) == nil {
			t.Fatalf("a spoilt plan passed: %+v\n%v", p, modes)
		}
	})
}

// The words of a battery schedule, and which of them leave the battery a choice.
func TestStepOf(t *testing.T) {
	for _, c := range []struct {
		mode    battery.Mode
		net     flex.WattHours
		want    battery.Action
		deviate bool
	}{
		{battery.ModeCharge, 5, battery.ChargeMax, false}, {battery.ModeDischarge, -5, battery.DischargeMax, false},
		{battery.ModeLock, 5, battery.AvoidExport, false}, {battery.ModeLock, -5, battery.AvoidImport, false},
		{battery.ModeFeedIn, -5, battery.AvoidImport, false}, {battery.ModeFeedIn, 5, battery.AvoidImport, false},
		{battery.ModeSelfUse, 5, battery.AvoidImport, true}, {battery.ModeSelfUse, -5, battery.AvoidExport, true},
	} {
		if got, deviate := battery.StepOf(c.mode, c.net); got != c.want || deviate != c.deviate {
			t.Errorf("%v at %d: %v, %v", c.mode, c.net, got, deviate)
		}
	}
}
