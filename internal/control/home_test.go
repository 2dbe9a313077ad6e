package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// homeSite gives the fixture's site a battery of 3 kW and 10 kWh that is half full, beside its
// charger.
func (h *fixture) homeSite() flex.AssetID {
	h.Helper()
	id := h.battery()
	now := time.UnixMicro(h.micro.Load()).UTC().Format(time.RFC3339)
	h.read(id, flex.BatteryStateOfCharge, now, now, 60)
	return id
}

// modes is what a battery is sent from now on.
func (h *fixture) modes(id flex.AssetID) []control.ModeSpan {
	h.Helper()
	steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}
	return steps
}

// checkHome holds what a battery is sent against what the fixture's car does until it is done: the
// battery never discharges while the car charges, and both keep the fuse.
func (h *fixture) checkHome(id flex.AssetID, fuse flex.Watts) {
	h.Helper()
	s := h.look().Current
	for _, m := range h.modes(id) {
		for _, step := range s.Steps {
			draws := min(step.Limit, s.From.Power)
			if draws == 0 || step.Meet(m.Span).Empty() {
				continue
			}

			mayDischarge := m.Mode != battery.ModeCharge && m.Mode != battery.ModeLock
			if mayDischarge && step.From.Before(s.From.ReadyBy) {
				h.Errorf(
					"the car charges in %v, where the battery is asked for %v in %v",
					step.Span,
					m.Mode,
					m.Span,
				)
			}

			if m.Mode == battery.ModeCharge && fuse > 0 && draws+3000 > fuse {
				h.Errorf(
					"%d W and the battery's 3000 pass a fuse of %d in %v and %v",
					draws,
					fuse,
					step.Span,
					m.Span,
				)
			}
		}
	}
}

// TestHome_CarAndBattery has a car come home in the evening to a battery that covers the home. The
// battery does not empty itself into the car, with a main fuse and without one; both are charged by
// night, one after the other where the fuse does not carry both.
func TestHome_CarAndBattery(t *testing.T) {
	for _, fuse := range []float64{0, 9} {
		each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
			id := h.homeSite()
			if fuse > 0 {
				h.setFuse(fuse)
			}

			h.runBatteries()
			alone := h.sentTo(id)

			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
			h.checkHome(id, flex.FromKW(fuse))
			h.accept()
			h.wait(time.Hour)
			h.replan()
			h.runBatteries()
			h.checkHome(id, flex.FromKW(fuse))

			x := h.explanation()
			if !x.Exact || x.Plan.Shortfall > 0 {
				h.Errorf(
					"exact is %v, and %d Wh are missing: %s",
					x.Exact,
					x.Plan.Shortfall,
					x.Prose(),
				)
			}

			t.Log(alone, "|", h.sentTo(id), "|", h.look().Current.Steps)
			waits := fuse == 0 || strings.Contains(h.sentTo(id), "LOCK")
			if !strings.Contains(h.sentTo(id), "CHARGE") || !waits {
				t.Errorf("the battery does %s, alone %s", h.sentTo(id), alone)
			}

			if !strings.Contains(x.Prose(), "as one with the battery") {
				t.Errorf("the battery is not named: %s", x.Prose())
			}

			h.waits(id, fuse > 0)
			h.ahead(fuse)
			h.event(control.Event{Kind: control.PlugOut})
			if after := h.sentTo(id); strings.Contains(after, "LOCK") {
				t.Errorf("the battery waits for a car that is gone: %s", after)
			}
			h.clean()
		})
	}
}

// TestHome_Reasons has a car wait beside a battery, at a site without a cap: its explanation blames none.
func TestHome_Reasons(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.homeSite()
		h.runBatteries()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})

		x := h.explanation()
		for _, p := range x.Plan.Periods {
			if p.Reason == charge.CapClosed {
				t.Errorf("%v is closed by a cap: there is none: %s", p.Span, x.Prose())
			}
		}

		if first := x.Plan.Periods[0]; first.Reason != charge.PeakClosed {
			t.Errorf("the evening is left out as %q", first.Reason)
		}
	})
}

// TestHome_FallsShort has the main fuse leave too little for a car's need, and then more cars come than
// are planned as one with a battery. The explanation says which limit decided, how much is missing and
// what one kW more would bring; and that the site is not planned as one, which is listed.
func TestHome_FallsShort(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.homeSite()
		h.setFuse(4)
		h.runBatteries()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(30, flex.Minimise)})

		x := h.explanation()
		if x.Plan.Shortfall == 0 || !strings.Contains(x.Summary, "under the main fuse, 4 kW: ") || !strings.Contains(x.Summary, "One kW more of main fuse would bring ") {
			t.Errorf("%d Wh are missing: %s", x.Plan.Shortfall, x.Summary)
		}

		if strings.HasSuffix(x.From.Origins, store.CutShort) {
			t.Errorf("one car and a battery are cut short: %s", x.From.Origins)
		}

		for range 3 {
			h.at(h.Asset(h.site, flex.Charger, 7000))
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(5, flex.Minimise)})
		}

		x = h.explanation()
		if !strings.Contains(x.Summary, "not planned as one with the battery of its site, as there are more than 98 half-hours or 3 cars") ||
			!strings.HasSuffix(x.From.Origins, " "+store.CutShort) {
			t.Errorf("four cars and a battery: %s (%s)", x.Summary, x.From.Origins)
		}
	})
}

// TestHome_ClocksBack plugs a car in just after midnight, beside a battery whose plan reaches to the end of tomorrow, where today or
// tomorrow has 25 hours: the site is planned as one, as in any other night.
func TestHome_ClocksBack(t *testing.T) {
	for _, midnight := range []string{"2026-10-23T23:10:00Z", "2026-10-24T23:10:00Z"} {
		each(t, midnight, func(h *fixture) {
			h.homeSite()
			h.runBatteries()
			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(10, flex.Minimise)})

			if x := h.explanation(); strings.HasSuffix(x.From.Origins, store.CutShort) {
				h.Errorf("%s: %s (%s)", midnight, x.Summary, x.From.Origins)
			}
		})
	}
}

// waits checks that the reason of a battery's plan names the car that it waits for, and until when.
func (h *fixture) waits(id flex.AssetID, fused bool) {
	h.Helper()
	w, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
	if err != nil {
		h.Fatal(err)
	}

	s := h.look().Current
	for _, p := range w.Periods {
		if !chargesIn(s.Steps, p.Span(), s.From.ReadyBy) {
			continue
		}

		if want := map[bool]control.Waits{false: control.WaitsForCar, true: control.WaitsForFuse}[fused]; p.Waits != want || !p.Until.After(p.Start()) {
			h.Errorf(
				"in %v the battery waits for %q until %v, want %q",
				p.Span(),
				p.Waits,
				p.Until,
				want,
			)
		}
	}
}

// chargesIn reports whether steps charge in a span, before an instant.
func chargesIn(steps []flex.Step, span flex.Span, end time.Time) bool {
	for _, s := range steps {
		if s.Limit > 0 && s.From.Before(end) && !s.Meet(span).Empty() {
			return true
		}
	}
	return false
}

// draws has a meter read the same power through the twenty days before one.
func (h *fixture) draws(meter flex.AssetID, day flex.Day, power int64) {
	h.Helper()
	var rs []flex.Reading
	for k := 1; k <= 20; k++ {
		for n := 1; n <= 48; n++ {
			rs = append(rs, flex.Reading{
				AssetID: meter,
				Span:    day.Add(-k).Period(n).Span(),
				Label:   flex.BoundaryImportPower,
				Value:   flex.Micro(power * 1000),
			})
		}
	}

	h.write(func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
}

func (h *fixture) write(do func(*store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), h.Org, do); err != nil {
		h.Fatal(err)
	}
}

// TestHome_BaseLoad_Learned has what a home draws learned at the first plan of a day: what is read after
// that counts from the next day on, another asset has it learned at once, and without consent nothing
// is known.
func TestHome_BaseLoad_Learned(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		car := h.fuse(10, 7400)[0]
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		plug := control.Event{
			Kind:   control.PlugIn,
			Tariff: nightTariff("Europe/London"),
			Intent: need(22, flex.Minimise),
		}

		expect := func(what string, want float64) {
			t.Helper()
			h.at(car).event(control.Event{Kind: control.PlugOut})
			h.wait(5 * time.Minute)
			h.event(plug)
			a, err := h.service.SiteAhead(h.Context(), h.site)
			if err != nil {
				t.Fatal(err)
			}

			if got := a.Periods[0].Home; got != want {
				t.Errorf("%s: %g kW are kept for the home, not %g", what, got, want)
			}
		}

		expect("nothing was read", 0)
		h.draws(meter, day, 1700)
		expect("read", 2)

		h.draws(meter, day, 2700)
		expect("corrected on the same day", 2)

		h.Asset(h.site, flex.Charger, 3600)
		expect("with another asset", 3)

		h.draws(meter, day, 700)
		h.goTo("2026-01-15T00:10:00Z")
		expect("on the next day", 1)

		h.NoConsent()
		expect("without consent", 0)
	})
}

// TestHome_BaseLoad has a home whose meter was read: what it usually draws is kept free under the
// fuse, beside two cars and in the battery's plan, and the explanation says so.
func TestHome_BaseLoad(t *testing.T) {
	each(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		cars := h.fuse(10, 7400)
		day := flex.DayAt(at("2026-01-14T18:00:00Z"))
		h.Consent(day.Add(-30).Start())
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		h.draws(meter, day, 1700)

		cs := chargers{}
		for _, car := range cars {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(22, flex.Minimise)})
		}

		cs.settle(h, cars)
		if w, when := cs.most(time.UnixMicro(h.micro.Load())); w != 8000 {
			t.Errorf("%d W are drawn at %v: of 10 kW 2 are the home's", w, when)
		}

		said := false
		for _, car := range cars {
			x := h.at(car).explanation()
			said = said || strings.Contains(x.Prose(), "the main fuse, 10 kW, of which 2 kW are kept for the home's own load")
		}
		if !said {
			t.Error("no explanation names what is kept for the home")
		}
		h.clean()
	})
}

// TestHome_Export has a battery that would be sold for more than it costs to fill: behind an export
// limit of 0 it never is, at negative prices it is filled, and never emptied into the car.
func TestHome_Export(t *testing.T) {
	one(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		id := h.homeSite()
		h.tariff(id, flex.Tariff{Zone: "Europe/London", Type: flex.DynamicTariff})
		prices := slices.Repeat([]float64{200}, 60)
		for i := range 4 {
			prices[2+i], prices[30+i] = 900, -100 // 19:00 and 09:00
		}

		h.publish("2026-01-14T18:00:00Z", prices...)
		h.runBatteries()
		if m := modeAt(h.modes(id), "2026-01-14T19:30:00Z"); m != battery.ModeDischarge {
			t.Fatalf("alone it is asked for %v at the dearest time", m)
		}

		h.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000, export_w = 0 WHERE id = $1`, h.site.Bytes())
		intent := need(10, flex.Minimise)
		intent.ReadyByLocal = new(flex.WallTime(12 * time.Hour))
		h.event(control.Event{Kind: control.PlugIn, Intent: intent})
		h.checkHome(id, 23000)

		for _, m := range h.modes(id) {
			if m.Mode == battery.ModeDischarge {
				t.Errorf(
					"behind an export limit of 0 it is asked for %v from %v on",
					m.Mode,
					m.From,
				)
			}
		}
		if m := modeAt(h.modes(id), "2026-01-15T09:30:00Z"); m != battery.ModeCharge {
			t.Errorf("at negative prices it is asked for %v", m)
		}
		h.clean()
	})
}

// A battery that is alone at its site keeps the export limit too.
func TestHome_ExportAlone(t *testing.T) {
	one(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		id := h.homeSite()
		h.Exec(`UPDATE asset SET type = 'pv inverter' WHERE site_id = $1 AND type = 'charger'`, h.site.Bytes())
		h.Exec(`UPDATE site SET supply_set = TRUE, import_w = 23000, export_w = 0 WHERE id = $1`, h.site.Bytes())
		h.tariff(id, flex.Tariff{Zone: "Europe/London", Type: flex.DynamicTariff})
		prices := slices.Repeat([]float64{200}, 60)
		for i := range 4 {
			prices[2+i] = 900 // 19:00
		}

		h.publish("2026-01-14T18:00:00Z", prices...)
		h.runBatteries()
		for _, m := range h.modes(id) {
			if m.Mode == battery.ModeDischarge {
				t.Errorf(
					"behind an export limit of 0 it is asked for %v from %v on",
					m.Mode,
					m.From,
				)
			}
		}
	})
}

// ahead lays the site's plans beside each other: what is drawn together keeps the fuse, and each
// sentence names what the battery waits for.
func (h *fixture) ahead(fuse float64) {
	h.Helper()
	a, err := h.service.SiteAhead(h.Context(), h.site)
	if err != nil || len(a.Devices) != 2 || len(a.Periods) != 48 {
		h.Fatalf(
			"%d devices in %d half-hours: %v",
			len(a.Devices),
			len(a.Periods),
			err,
		)
	}

	charged := 0.0
	for _, p := range a.Periods {
		charged += p.Devices[0] / 2
		if fuse > 0 && p.Meter > fuse+0.5 {
			h.Errorf("%v kW pass the meter at %v", p.Meter, p.Start())
		}
	}

	if charged < 21.9 || charged > 22.1 {
		h.Errorf("the car takes %.2f kWh of 22", charged)
	}

	lines := strings.Join(a.Lines, " ")
	if !strings.Contains(lines, "as one with the battery") || fuse > 0 && !strings.Contains(lines, "it waits, because the car needs the main fuse until ") {
		h.Errorf("nothing is said of who waits for whom: %s", lines)
	}
}
