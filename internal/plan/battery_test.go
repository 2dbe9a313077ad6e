package plan_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/plan"

	_ "flexd/test/seed"
	"pgregory.net/rapid"
)

// home is a battery on a day of cheap nights and dear evenings, from noon on.
func home() plan.BatteryProblem {
	p := plan.BatteryProblem{
		From: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		Min:  500, Max: 9500, Stored: 500, Charge: 3600, Discharge: 3600, ChargeEff: 0.95, DischargeEff: 0.95,
		Mode: plan.ModeSelfUse, SwitchCost: 1000, Worth: flex.FromGBPPerMWh(60),
	}
	first := flex.PeriodAt(p.From)
	for i := range 48 {
		s := plan.BatterySlot{Period: first.Add(i), Import: flex.FromGBPPerMWh(250), Export: flex.FromGBPPerMWh(40), Load: 200}
		switch h := s.Period.Start().Hour(); {
		case h < 5:
			s.Import = flex.FromGBPPerMWh(70)
		case h >= 17 && h < 19:
			s.Export = flex.FromGBPPerMWh(260)
		}
		p.Slots = append(p.Slots, s)
	}
	return p
}

func TestBattery_BuysLowAndSellsHigh(t *testing.T) {
	p := home()
	p.Stored = 6000
	got := new(plan.Scratch).Battery(p)
	if err := plan.CheckBattery(p, got); err != nil {
		t.Fatal(err)
	}
	kinds := map[plan.Mode]bool{}
	for _, q := range got.Actions() {
		kinds[q.Action] = true
		h := q.From.Hour()
		if q.Action == plan.ModeCharge && (h >= 5) || q.Action == plan.ModeDischarge && (h < 17 || h >= 19) {
			t.Errorf("%v at %v", q.Action, q.From)
		}
	}
	if !kinds[plan.ModeCharge] || !kinds[plan.ModeDischarge] || !kinds[plan.ModeSelfUse] {
		t.Errorf("actions %v", kinds)
	}
	for _, q := range got.Periods {
		if q.Reason == 0 || q.Action == plan.ModeCharge && q.Reason != plan.BuyLow && q.Reason != plan.NothingToDo {
			t.Errorf("%v at %v because %v", q.Action, q.From, q.Reason)
		}
	}
}

// TestBattery_KeepsItsModes draws homes of all kinds, and spoils the plan of each.
func TestBattery_KeepsItsModes(t *testing.T) {
	var w plan.Scratch
	rapid.Check(t, func(t *rapid.T) {
		p := home()
		whole := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		p.From = p.From.Add(time.Duration(whole(0, 1799, "seconds in")) * time.Second)
		p.Slots = p.Slots[:whole(1, 12, "slots")]
		p.Slots = append([]plan.BatterySlot(nil), p.Slots...)
		p.Min, p.Max, p.Stored = flex.WattHours(whole(0, 2000, "min")), flex.WattHours(whole(2000, 9000, "max")), flex.WattHours(whole(0, 10_000, "stored"))
		p.Charge, p.Discharge = flex.Watts(whole(0, 5000, "charge")), flex.Watts(whole(0, 5000, "discharge"))
		p.ChargeEff, p.DischargeEff = float64(whole(80, 100, "eff"))/100, float64(whole(80, 100, "eff"))/100
		p.ImportLimit, p.ExportLimit = flex.Watts(whole(0, 1, "limited")*whole(1000, 9000, "import")), flex.Watts(whole(0, 1, "limited")*whole(0, 5000, "export"))
		p.Wear = flex.FromGBPPerMWh(float64(whole(0, 40, "wear")))
		p.Mode = plan.Mode(whole(0, 4, "mode"))
		for i := range p.Slots {
			s := &p.Slots[i]
			s.Import, s.Export = flex.FromGBPPerMWh(float64(whole(-100, 400, "buy"))), flex.FromGBPPerMWh(float64(whole(-100, 300, "sell")))
			s.Load, s.PV = flex.WattHours(whole(0, 1500, "load")), flex.WattHours(whole(0, 2500, "roof"))
		}
		got := w.Battery(p)
		if err := plan.CheckBattery(p, got); err != nil {
			t.Fatalf("%v\n%+v\n%+v", err, p, got)
		}
		q := &got.Periods[whole(0, len(got.Periods)-1, "spoilt")]
		switch whole(0, 5, "how") {
		case 0:
			q.Stored += 10
		case 1:
			q.Grid += 2
		case 2:
			q.To = q.To.Add(time.Second)
		case 3:
			got.Cost += 3
		case 4:
			got.LowerBound = got.Cost + 3
		case 5:
			got.Steps[0].Action = map[bool]plan.BatteryAction{true: plan.DischargeMax, false: plan.ChargeMax}[got.Steps[0].Action == plan.ChargeMax]
		}
		if plan.CheckBattery(p, got) == nil {
			t.Fatalf("a spoilt plan passed: %+v\n%+v", p, got)
		}
	})
}

func TestBattery_Nothing(t *testing.T) {
	p := home()
	p.From = p.Slots[47].Period.End()
	if got := new(plan.Scratch).Battery(p); len(got.Periods) != 0 {
		t.Errorf("planned the past: %+v", got)
	}
}

func TestStepOf(t *testing.T) {
	for _, row := range []struct {
		mode    plan.Mode
		net     flex.WattHours
		want    plan.BatteryAction
		deviate bool
	}{
		{plan.ModeCharge, 1, plan.ChargeMax, false},
		{plan.ModeCharge, -1, plan.ChargeMax, false},
		{plan.ModeDischarge, 1, plan.DischargeMax, false},
		{plan.ModeDischarge, -1, plan.DischargeMax, false},
		{plan.ModeLock, 1, plan.AvoidExport, false}, // the home draws, and is not covered
		{plan.ModeLock, 0, plan.AvoidImport, false},
		{plan.ModeLock, -1, plan.AvoidImport, false}, // the surplus is sold, and not stored
		{plan.ModeFeedIn, 1, plan.AvoidImport, false},
		{plan.ModeFeedIn, -1, plan.AvoidImport, false},
		{plan.ModeSelfUse, 1, plan.AvoidImport, true},
		{plan.ModeSelfUse, 0, plan.AvoidExport, true},
		{plan.ModeSelfUse, -1, plan.AvoidExport, true},
	} {
		if got, deviate := plan.StepOf(row.mode, row.net); got != row.want || deviate != row.deviate {
			t.Errorf("%v with %d Wh: %s %t, want %s %t", row.mode, row.net, got, deviate, row.want, row.deviate)
		}
	}
}
