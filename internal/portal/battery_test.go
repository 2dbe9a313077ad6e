package portal

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestModeText: each step of a battery names its day, one that ends on another day both, and says nothing of panels.
func TestModeText(t *testing.T) {
	start := time.Date(2026, 1, 15, 0, 30, 0, 0, time.UTC)
	for want, step := range map[string]control.BatteryStretch{
		"15 January, 00:30 to 02:00 it charges": {Span: flex.Span{From: start, To: start.Add(90 * time.Minute)}, BatteryReason: control.BatteryReason{Mode: battery.ModeCharge}},
		"15 January, 00:30 to 16 January, 01:00 it neither charges nor discharges": {
			Span: flex.Span{From: start, To: start.Add(24*time.Hour + 30*time.Minute)}, BatteryReason: control.BatteryReason{Mode: battery.ModeLock},
		},
		"15 January, 00:30 to 00:00 it covers the home, and stores any surplus": {
			Span: flex.Span{From: start, To: start.Add(23*time.Hour + 30*time.Minute)}, BatteryReason: control.BatteryReason{Mode: battery.ModeSelfUse},
		},
	} {
		if got := new(speech).modeText(step); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestBecauseText says why a battery waits, charges or sells, in both languages.
func TestBecauseText(t *testing.T) {
	evening := time.Date(2026, 1, 15, 17, 30, 0, 0, time.UTC)
	night := time.Date(2026, 7, 16, 1, 10, 0, 0, time.UTC)
	for want, r := range map[[2]string]control.BatteryReason{
		{
			"It keeps its energy for 17:30 on Thursday, when a kWh is worth 38 p and not 24.5 p.",
			"Die Energie bleibt für 17:30 am Donnerstag gespeichert: Dann ist eine kWh 38 p wert und nicht 24,5 p.",
		}: {Cause: control.BatteryKeepsForLater, Later: evening, LaterPence: 38.04, Now: 24.5},
		{
			"It keeps its energy for 17:30 on Thursday, when a kWh is worth 28 p, as now.",
			"Die Energie bleibt für 17:30 am Donnerstag gespeichert: Dann ist eine kWh 28 p wert, so viel wie jetzt.",
		}: {Cause: control.BatteryKeepsForSame, Later: evening, LaterPence: 28, Now: 28},
		{"The car needs the main fuse until 02:10.", "Das Auto braucht die Hauptsicherung bis 02:10."}: {
			Cause: control.BatteryWaitsForOther, Waits: control.WaitsForFuse, Until: night,
		},
		{"It is down to its reserve, which is kept.", "Sie ist bis auf ihre Reserve entladen, und die bleibt."}: {Cause: control.BatteryKeepsReserve},
		{"A kWh costs 9 p.", "Eine kWh kostet 9 p."}:                                                            {Cause: control.BatteryBuys, Now: 9},
		{"", ""}: {Cause: control.BatteryCovers},
	} {
		for i, l := range speeches {
			if got := l.becauseText(control.BatteryStretch{BatteryReason: r}); got != want[i] {
				t.Errorf("%q, not %q", got, want[i])
			}
		}
	}
}

// TestBatteryPaysText: the bill and the wear, which is on none, are two figures.
func TestBatteryPaysText(t *testing.T) {
	b := control.HouseholdBattery{
		Plan:  control.BatteryCost{Bill: 210.4, Wear: 31.6},
		Idle:  control.BatteryCost{Bill: 333.3},
		Until: time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC),
	}
	want := "Until 00:00 on Friday your home is expected to pay £2.10 for electricity, less what is then left in the battery. " +
		"That is £1.23 better than if the battery only covered your home. The plan also counts £0.32 for wear of the battery, which is on no bill."
	if got := speeches[0].batteryPaysText(b); got != want {
		t.Errorf("%q", got)
	}
	b.Plan, b.Idle = control.BatteryCost{Bill: 210}, control.BatteryCost{Bill: 210}
	if got := speeches[0].batteryPaysText(b); got != want[:len("Until 00:00 on Friday your home is expected to pay £2.10 for electricity, less what is then left in the battery.")] {
		t.Errorf("%q", got)
	}
}

// TestBatteriesPayText: several batteries have one bill, and each says what it alone saves; what a home earns is no negative bill.
func TestBatteriesPayText(t *testing.T) {
	until := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	saves := control.HouseholdBattery{Plan: control.BatteryCost{Bill: -20, Wear: 3}, Idle: control.BatteryCost{Bill: 30}, Until: until}
	idle := control.HouseholdBattery{Plan: control.BatteryCost{Bill: 30}, Idle: control.BatteryCost{Bill: 30}, Until: until}
	for i, l := range speeches {
		got := []string{
			l.batteriesPayText(control.HouseholdBill{Pence: 210, Until: until}), l.batteriesPayText(control.HouseholdBill{Pence: -40, Until: until}),
			l.batterySavesText(saves), l.batterySavesText(idle), l.batteryPaysText(saves),
		}
		want := [][]string{{
			"Until 00:00 on Friday your home is expected to pay £2.10 for electricity, less what is then left in the batteries.",
			"Until 00:00 on Friday electricity is expected to bring your home £0.40, what is then left in the batteries included.",
			"By its plan your home is £0.50 better off than if this battery only covered it. The plan also counts £0.03 for wear of the battery, which is on no bill.",
			"By its plan your home pays no less than if this battery only covered it.",
			"Until 00:00 on Friday electricity is expected to bring your home £0.20, what is then left in the battery included. That is £0.50 better than if the battery only covered your home. The plan also counts £0.03 for wear of the battery, which is on no bill.",
		}, {
			"Bis 00:00 am Freitag zahlt Ihr Haushalt voraussichtlich £2.10 für Strom, abzüglich dessen, was dann in den Batterien bleibt.",
			"Bis 00:00 am Freitag bringt der Strom Ihrem Haushalt voraussichtlich £0.40 ein; was dann in den Batterien bleibt, ist mitgerechnet.",
			"Nach diesem Plan steht Ihr Haushalt um £0.50 besser da, als wenn diese Batterie ihn nur versorgte. Außerdem rechnet der Plan £0.03 für den Verschleiß der Batterie; das steht auf keiner Rechnung.",
			"Nach diesem Plan zahlt Ihr Haushalt nicht weniger, als wenn diese Batterie ihn nur versorgte.",
			"Bis 00:00 am Freitag bringt der Strom Ihrem Haushalt voraussichtlich £0.20 ein; was dann in der Batterie bleibt, ist mitgerechnet. Das ist um £0.50 besser, als wenn die Batterie nur Ihr Haus versorgte. Außerdem rechnet der Plan £0.03 für den Verschleiß der Batterie; das steht auf keiner Rechnung.",
		}}[i]
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%q, not %q", got[k], want[k])
			}
		}
	}
}

// TestSavedText_BelowZero: a plan at prices below zero brings money, and does not cost less than nothing.
func TestSavedText_BelowZero(t *testing.T) {
	now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
	car := control.HouseholdCar{Priced: true, Energy: 20_000, ReadyBy: now.Add(time.Hour), Cost: -90_000, AtOnce: 2_570_000}
	less, same := car, car
	less.AtOnce, same.AtOnce = -40_000, -90_000
	for i, l := range speeches {
		got := []string{l.savedText(car, now), l.savedText(less, now), l.savedText(same, now), l.savedText(car, car.ReadyBy)}
		want := [][]string{{
			"At market prices that brings £0.09. Charged at once it would have cost £2.57.", "At market prices that brings £0.09. Charged at once it would have brought £0.04.",
			"At market prices that brings £0.09.", "At market prices the plan brought £0.09. Charged at once it would have cost £2.57.",
		}, {
			"Zu Marktpreisen bringt das £0.09 ein. Sofort geladen hätte es £2.57 gekostet.", "Zu Marktpreisen bringt das £0.09 ein. Sofort geladen hätte es £0.04 eingebracht.",
			"Zu Marktpreisen bringt das £0.09 ein.", "Zu Marktpreisen brachte der Plan £0.09 ein. Sofort geladen hätte es £2.57 gekostet.",
		}}[i]

		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%q, not %q", got[k], want[k])
			}
		}
	}
}
