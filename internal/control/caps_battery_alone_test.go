package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// TestCaps_BatteriesAlone has flexd fail after a car came that has the headroom which a battery was planned to charge in: the
// schedule that the battery read before and the one that the car was sent keep the cap together, minute by minute. A battery
// that no cap binds is sent its whole night.
func TestCaps_BatteriesAlone(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		homes := h.cappedHomes("north", "south")
		for _, home := range homes {
			h.read(home.battery, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 20)
		}

		h.setCaps(flex.Caps{Groups: []flex.CapGroup{
			{Name: "north", Sites: h.sitesOf(homes, "north"), Cap: kw(7.4)},
			{Name: "south", Sites: h.sitesOf(homes, "south")},
		}})
		h.runBatteries()
		if n := h.charging(homes[0].battery); n == 0 {
			t.Fatal("a battery alone under the cap is not planned to charge")
		}

		read := h.chargingSteps(homes[0].battery)
		if len(h.chargingSteps(homes[1].battery)) == 0 {
			t.Error("a battery without a cap is not sent to charge at night")
		}

		h.asset = homes[0].car
		h.plugInAt(7.4*6, flex.Minimise)
		sent := h.look().Current
		drawing := read
		for _, s := range sent.Steps {
			drawing = append(drawing, flex.Step{Span: s.Span, Limit: min(s.Limit, sent.From.Power)})
		}

		for minute := at("2026-01-14T18:10:00Z"); minute.Before(at("2026-01-15T07:00:00Z")); minute = minute.Add(time.Minute) {
			if w := sumAt(drawing, minute); w > 7400 {
				t.Fatalf("%d W are drawn at %s", w, minute.Format("15:04"))
			}
		}

		// The battery that flexd still speaks to charges in its turn where the car has left.
		h.event(control.Event{Kind: control.PlugOut})
		h.runBatteries()
		for p := flex.PeriodAt(at("2026-01-14T18:30:00Z")); p.Start().Before(at("2026-01-15T07:00:00Z")); p = p.Add(1) {
			h.goTo(p.Start().Format(time.RFC3339))
			h.runBatteries()
			if sumAt(h.chargingSteps(homes[0].battery), p.Start()) > 0 {
				return
			}
		}
		t.Error("a battery alone under the cap never charges")
	})
}

// chargingSteps is when the schedule of a battery of 3 kW, as it is read now, has it charge.
func (h *fixture) chargingSteps(id flex.AssetID) (steps []flex.Step) {
	h.Helper()
	sent, _, err := h.service.BatterySteps(h.Context(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}

	for _, s := range sent {
		if s.Action == battery.ChargeMax {
			steps = append(steps, flex.Step{Span: s.Span, Limit: 3000})
		}
	}
	return steps
}
