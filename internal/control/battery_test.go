package control_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// battery gives flexd's site a battery of 3 kW and 10 kWh under the night tariff.
func (h *fixture) battery() flex.AssetID {
	h.Helper()
	id := h.Asset(h.site, flex.Battery, 3000)
	h.Exec(`UPDATE asset SET capacity_wh = 10000, model = 'Box 10' WHERE id = $1`, id.Bytes())
	h.tariff(id, *nightTariff("Europe/London"))

	// What is exported earns less than the cheap hours cost: there is nothing in filling the
	// battery to empty it into the grid.
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		return tx.SetSettings(h.Context(), flex.OrgSettings{Rates: flex.BatteryRates{Export: flex.Some(5.0)}})
	})
	if err != nil {
		h.Fatal(err)
	}

	return id
}

func (h *fixture) tariff(id flex.AssetID, t flex.Tariff) {
	h.Helper()
	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutTariff(h.Context(), id, t) }); err != nil {
		h.Fatal(err)
	}
}

func (h *fixture) read(id flex.AssetID, label flex.Label, from, to string, value float64) {
	h.Helper()
	r := flex.Reading{AssetID: id, Span: flex.Span{From: at(from), To: at(to)}, Label: label, Value: flex.Micro(value * 1e6)}
	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), []flex.Reading{r}) }); err != nil {
		h.Fatal(err)
	}
}

// batteryRound runs the job and says how many plans it worked out.
func (h *fixture) runBatteries() int {
	h.Helper()
	r, err := h.service.PlanBatteries(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	return r.Count
}

// sentTo writes what the battery is sent from now on, as hours of London.
func (h *fixture) sentTo(id flex.AssetID) string {
	h.Helper()
	steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
	if err != nil {
		h.Fatal(err)
	}
	return written(steps)
}

func written(steps []control.ModeSpan) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.From.In(flex.London).Format("15:04")+" "+s.Mode.String())
	}
	return strings.Join(out, ", ")
}

func modeAt(steps []control.ModeSpan, when string) battery.Mode {
	for _, s := range steps {
		if s.Contains(at(when)) {
			return s.Mode
		}
	}
	return battery.Mode(99)
}

func TestBatteryChargesByNight(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 50)

		if n := h.runBatteries(); n != 1 {
			t.Fatalf("%d plans", n)
		}

		if n := h.runBatteries(); n != 0 {
			t.Errorf("%d plans a moment later", n)
		}

		steps, changed, err := h.service.BatterySchedule(h.Context(), h.Org, id)
		if err != nil || !changed.Equal(at("2026-01-14T18:10:00Z")) {
			t.Fatalf("%v, %v", changed, err)
		}

		first, last := steps[0], steps[len(steps)-1]
		if !first.From.Equal(at("2026-01-14T18:00:00Z")) || !last.To.Equal(at("2026-01-16T00:00:00Z")) {
			t.Errorf("from %s to %s", first.From, last.To)
		}

		charged := time.Duration(0)
		for _, s := range steps {
			if s.Mode != battery.ModeCharge {
				continue
			}

			charged += s.Len()

			for p := flex.PeriodAt(s.From); p.Start().Before(s.To); p = p.Add(1) {
				if hour := p.Start().Hour(); hour >= 6 && p.Start().Format("15:04") < "23:30" {
					t.Errorf("charges at %s", p.Start())
				}
			}
		}

		if charged == 0 {
			t.Errorf("never charges: %s", written(steps))
		}

		if m := modeAt(steps, "2026-01-15T18:00:00Z"); m != battery.ModeSelfUse && m != battery.ModeFeedIn {
			t.Errorf("in the evening it is asked for %v", m)
		}
	})
}

// TestBatteryWhy_Powers has a battery of 10 kWh charge at 5 kW, cover a home, and wait: 5 % are lost on either way.
func TestBatteryWhy_Powers(t *testing.T) {
	why := control.BatteryWhy{Stored: 5000}
	for _, stored := range []flex.WattHours{7375, 5375, 5375} {
		why.Periods = append(why.Periods, control.BatteryPeriod{Stored: stored})
	}

	for i, want := range []flex.Watts{5000, -3800, 0} {
		if got := why.Powers()[i]; got < want-1 || got > want+1 {
			t.Errorf("half-hour %d: %d W, want %d", i, got, want)
		}
	}
}

// Why a battery does what it does is about the plan that it is sent, which saves something; a
// larger battery saves more, and the question changes nothing.
func TestWhyBattery(t *testing.T) {
	one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		why := func(q *control.BatteryQuestion) (control.BatteryWhy, *control.BatteryWhy, error) {
			return h.service.WhyBattery(h.Context(), h.Org, id, q)
		}
		if _, _, err := why(nil); flex.KindOf(err) != flex.NotFound {
			t.Errorf("before the first plan: %v", err)
		}

		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 50)
		h.runBatteries()
		told := h.sentTo(id)

		steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
		if err != nil {
			t.Fatal(err)
		}

		is, would, err := why(&control.BatteryQuestion{Power: 6000, Capacity: 20000})
		if err != nil {
			t.Fatal(err)
		}

		for _, p := range is.Periods {
			if m := modeAt(steps, p.Start().Format(time.RFC3339)); m != p.Mode || p.Stored < 0 || p.Stored > is.Capacity {
				t.Errorf("%v: told %v, explained %+v", p.Start(), m, p)
			}
		}

		if is.Stored < 4900 || is.Stored > 5100 || len(is.Periods) != 60 || is.Plan.Bill >= is.Idle.Bill || is.Periods[0].Buy != control.DefaultPeakRate {
			t.Errorf("%d half-hours from %d Wh: %v p, and %v idle", len(is.Periods), is.Stored, is.Plan, is.Idle)
		}

		h.expected(&is)
		want := []control.Input{
			{Name: "import_p_per_kwh", Value: "28", Origin: "default"},
			{Name: "off_peak_p_per_kwh", Value: "9", Origin: "default"},
			{Name: "export_p_per_kwh", Value: "5", Origin: "organisation"},
		}

		if !slices.Equal(is.Rates, want) {
			t.Errorf("planned on %v", is.Rates)
		}

		if would.Idle.Bill-would.Plan.Bill <= is.Idle.Bill-is.Plan.Bill || would.Stored != is.Stored {
			t.Errorf("a larger battery saves %v p, this one %v", would.Idle.Bill-would.Plan.Bill, is.Idle.Bill-is.Plan.Bill)
		}

		if again := h.sentTo(id); again != told {
			t.Errorf("asking made %s of %s", again, told)
		}

		h.Exec(`UPDATE asset SET capacity_wh = NULL, model = '' WHERE id = $1`, id.Bytes())

		if _, _, err := why(nil); flex.KindOf(err) != flex.NotFound {
			t.Errorf("without a capacity: %v", err)
		}
	})
}

// TestBattery_PlannedBefore has a program that does not know the fleet's curve of batteries plan one anew: what was planned for another
// half-hour is not taken for its own.
func TestBattery_PlannedBefore(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.homeSite()
		h.exports(50)
		h.runBatteries()

		var draws [2]int
		for i := range draws {
			span := flex.Span{From: at("2026-01-14T17:00:00Z"), To: at("2026-01-15T17:00:00Z")}
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				found, err := tx.BatteryDraws(h.Context(), span, nil)
				draws[i] = len(found)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			h.Exec(`UPDATE battery_plan SET stored_at = stored_at + 1800000000`)
		}

		if draws[0] == 0 || draws[1] > 0 {
			t.Errorf("%d half-hours by its plan, %d by one of before", draws[0], draws[1])
		}
	})
}

// expected compares the power that the fleet's curve has of the only battery with what its explanation says that it
// will hold.
func (h *fixture) expected(why *control.BatteryWhy) {
	h.Helper()
	powers := map[time.Time]float64{} // kW, by the half-hour
	first, last := why.Periods[0].Period, why.Periods[len(why.Periods)-1].Period
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		draws, err := tx.BatteryDraws(h.Context(), flex.Span{From: first.Start(), To: last.End()}, nil)
		for _, d := range draws {
			powers[d.From] = d.Power.KW()
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	moved, stored := 0, why.Stored
	for _, p := range why.Periods {
		gain, energy := (p.Stored - stored).KWh(), powers[p.Start()]/2
		low, high := min(0.85*energy, 1.2*energy), max(0.85*energy, 1.2*energy) // some is lost, whichever way
		if gain < low-0.01 || gain > high+0.01 {
			h.Errorf("%s: %g kWh are moved, and what it holds grows by %g", p.Start(), energy, gain)
		}

		if gain > 0.1 || gain < -0.1 {
			moved++
		}
		stored = p.Stored
	}

	if moved < 4 {
		h.Errorf("it moves energy in %d half-hours alone", moved)
	}
}

func TestBatteryIsPlannedAgain(t *testing.T) {
	one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.battery()
		h.runBatteries()
		before := h.sentTo(id)
		h.goTo("2026-01-14T18:29:00Z")

		if n := h.runBatteries(); n != 0 {
			t.Errorf("%d plans within the half-hour", n)
		}

		h.goTo("2026-01-14T18:30:00Z")

		if n := h.runBatteries(); n != 1 {
			t.Errorf("%d plans in the next", n)
		}

		// The tariff changes: the cheap hours are in the afternoon.
		h.wait(time.Second)
		err := h.service.Event(h.Context(), h.Org, id, control.Event{Kind: control.TariffUpdate,
			Tariff: &flex.Tariff{OffPeak: "12:00-16:00", Zone: "Europe/London", Type: flex.DualRate}})
		if err != nil {
			t.Fatal(err)
		}

		if n := h.runBatteries(); n != 1 {
			t.Errorf("%d plans after the tariff changed", n)
		}

		steps, changed, err := h.service.BatterySchedule(h.Context(), h.Org, id)
		if after := written(steps); err != nil || after == before || !changed.Equal(at("2026-01-14T18:30:01Z")) {
			t.Errorf("%v, %v: %s", changed, err, after)
		}

		for _, s := range steps {
			if s.Mode == battery.ModeCharge && s.From.Hour() < 12 {
				t.Errorf("charges at %s", s.From)
			}
		}

		// A dynamic tariff follows the market, and each publication.
		h.wait(time.Second)
		h.tariff(id, flex.Tariff{Zone: "Europe/London", Type: flex.DynamicTariff})

		prices := make([]float64, 12)
		for i := range prices {
			prices[i] = 100
		}

		prices[3], prices[4] = -50, -50
		h.publish("2026-01-14T18:30:00Z", prices...)
		h.runBatteries()

		steps, _, err = h.service.BatterySchedule(h.Context(), h.Org, id)
		if err != nil || modeAt(steps, "2026-01-14T20:00:00Z") != battery.ModeCharge || modeAt(steps, "2026-01-14T20:30:00Z") != battery.ModeCharge {
			t.Errorf("paid to charge at 20:00: %s, %v", written(steps), err)
		}

		if last := steps[len(steps)-1].To; !last.Equal(at("2026-01-15T00:30:00Z")) {
			t.Errorf("planned beyond the known prices, to %s", last)
		}

		h.wait(time.Second)

		if n := h.runBatteries(); n != 0 {
			t.Errorf("%d plans for nothing new", n)
		}

		h.wait(time.Second)
		h.publish("2026-01-14T18:30:00Z", prices...)

		if n := h.runBatteries(); n != 1 {
			t.Errorf("%d plans after new prices", n)
		}
	})
}

// TestBatteryReckonsOnItsCharge: without a state of charge the plan goes on from what the
// one before comes to; a reading far off makes another plan.
func TestBatteryReckonsOnItsCharge(t *testing.T) {
	one(t, "2026-01-14T18:00:00Z", func(h *fixture) {
		id := h.battery()
		stored := func() (s flex.WattHours) {
			h.Helper()
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				b, err := tx.Battery(h.Context(), id)
				s = b.Plan.Stored
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			return s
		}

		h.runBatteries()

		if s := stored(); s != 5000 {
			t.Errorf("a battery of which nothing is known holds %d, want half", s)
		}

		h.goTo("2026-01-14T18:30:00Z")
		h.runBatteries()

		if s := stored(); s >= 5000 || s < 4700 { // it covered the load of a typical home
			t.Errorf("after half an hour it holds %d", s)
		}

		h.read(id, flex.BatteryStoredEnergy, "2026-01-14T18:35:00Z", "2026-01-14T18:35:00Z", 9.5)
		h.goTo("2026-01-14T19:00:00Z")
		h.runBatteries()

		if s := stored(); s >= 9500 || s < 9300 { // it has covered the load since
			t.Errorf("it was read to hold 9.5 kWh, and 25 minutes later holds %d", s)
		}

		h.goTo("2026-01-14T22:00:00Z") // the reading is too old now
		h.runBatteries()

		if s := stored(); s >= 9500 || s < 7000 {
			t.Errorf("hours later it holds %d", s)
		}
	})
}

// TestBatteryFarOffPlan: a state of charge that is more than a tenth of the capacity off has
// the battery planned anew at once, but not twice in five minutes.
func TestBatteryFarOffPlan(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, "2026-01-14T23:00:00Z")
		id := h.battery()
		service := &reading.Service{DB: h.db}
		anew := func(clock string, percent float64) bool {
			t.Helper()
			h.goTo("2026-01-14T" + clock + "Z")
			when := flex.Span{From: at("2026-01-14T" + clock + "Z"), To: at("2026-01-14T" + clock + "Z")}
			verdicts, err := service.Store(h.Context(), h.Org, []reading.Input{{AssetID: id, Label: flex.BatteryStateOfCharge, Span: when, Value: percent}})
			if err != nil || !verdicts[0].Accepted() {
				t.Fatalf("%v, %v", verdicts, err)
			}

			before := h.Strings(`SELECT '' || planned_at FROM battery_plan`)
			h.runBatteries()

			if again := h.runBatteries(); again != 0 {
				t.Errorf("at %s it is looked at again", clock)
			}

			return !slices.Equal(before, h.Strings(`SELECT '' || planned_at FROM battery_plan`))
		}

		h.runBatteries() // half full, for all that is known; it draws the load of a typical home
		charging := func() (n int) {
			h.Helper()

			steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
			if err != nil {
				t.Fatal(err)
			}

			for _, s := range steps {
				if s.Mode == battery.ModeCharge && s.From.Before(at("2026-01-15T06:00:00Z")) {
					n += int(s.Len() / flex.HalfHour)
				}
			}

			return n
		}

		half := charging()

		if anew("23:06:00", 41) {
			t.Error("a little off, and it is planned anew")
		}

		if !anew("23:10:00", 30) || charging() <= half {
			t.Errorf("far below the plan: %d half-hours of charging, %d before", charging(), half)
		}

		if anew("23:14:59", 60) {
			t.Error("planned anew for it twice in five minutes")
		}

		if !anew("23:15:00", 60) || charging() >= half {
			t.Errorf("far above the plan: %d half-hours of charging, %d before", charging(), half)
		}

		if anew("23:21:00", 59) {
			t.Error("as planned, and it is planned anew")
		}
	})
}

func TestBatteryWithoutData(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		id := h.Asset(h.site, flex.Battery, 0)
		if n := h.runBatteries(); n != 1 || h.sentTo(id) != "" {
			t.Errorf("%d plans: %s", n, h.sentTo(id))
		}

		if n := h.runBatteries(); n != 0 {
			t.Errorf("%d plans for a battery of which nothing is known", n)
		}

		h.Exec(`INSERT INTO model (key, name, type, cop11, power_w, capacity_wh) VALUES ('box 10', 'Box 10', 'battery', $1, 3000, 10000)`, false)
		h.Exec(`UPDATE asset SET model = 'BOX 10' WHERE id = $1`, id.Bytes())
		h.goTo("2026-01-14T18:30:00Z")

		if h.runBatteries(); h.sentTo(id) != "18:30 SELF_USE" { // without cheap hours there is nothing to shift
			t.Errorf("with its model's power and capacity: %s", h.sentTo(id))
		}
	})
}

func TestBatteryRefusals(t *testing.T) {
	one(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		free := h.Asset(h.Site(), flex.Battery, 3000)
		h.runBatteries()

		for id, kind := range map[flex.AssetID]flex.Kind{h.asset: flex.NotFound, {1}: flex.NotFound, free: flex.Forbidden} {
			if _, _, err := h.service.BatterySchedule(h.Context(), h.Org, id); flex.KindOf(err) != kind {
				t.Errorf("%v: %v", id, err)
			}
		}

		for id, kind := range map[flex.AssetID]flex.Kind{h.asset: flex.NotFound, {1}: flex.NotFound} {
			if _, err := h.service.DispatchPlan(h.Context(), h.Org, id); flex.KindOf(err) != kind {
				t.Errorf("%v: %v", id, err)
			}
		}

		if plan, err := h.service.DispatchPlan(h.Context(), h.Org, free); err != nil || len(plan) != 0 {
			t.Errorf("%v, %v", plan, err)
		}

		if _, err := h.service.DispatchPlan(h.Context(), flex.OrgID{9}, free); flex.KindOf(err) == flex.Internal {
			t.Errorf("another organisation's: %v", err)
		}
	})
}

// TestDispatchPlan holds the cases that the interface does not tell apart.
func TestDispatchPlan(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, "2026-03-29T00:10:00Z") // a day of 46 half-hours
		id := h.battery()
		plan := func() string {
			t.Helper()

			got, err := h.service.DispatchPlan(h.Context(), h.Org, id)
			if err != nil {
				t.Fatal(err)
			}

			for i, p := range got {
				if i > 0 && !got[i-1].To.Equal(p.From) {
					t.Errorf("a gap before %s", p.From)
				}
			}

			if n := len(got); n > 0 && (!got[0].From.Equal(at("2026-03-29T00:00:00Z")) || !got[n-1].To.Equal(at("2026-03-29T23:00:00Z"))) {
				t.Errorf("from %s to %s, not the day", got[0].From, got[n-1].To)
			}

			return written(got)
		}

		h.runBatteries()
		h.Consent(time.UnixMicro(1))

		if got := plan(); got != "" {
			t.Errorf("in the sandbox: %s", got)
		}

		h.db.Environment = flex.Production

		full := plan()
		if !strings.Contains(full, "CHARGE") {
			t.Errorf("in production: %q", full)
		}

		h.NoConsent()

		if got := plan(); got != "" {
			t.Errorf("without consent to the wholesale market: %s", got)
		}

		h.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('box 10', 'Box 10', 'battery', $1)`, true)

		if got := plan(); got != full {
			t.Errorf("with an asset meter that qualifies: %s", got)
		}

		// The past of the day stays as it was sent.
		h.goTo("2026-03-29T12:00:00Z")
		h.runBatteries()

		if got := plan(); !strings.HasPrefix(got, strings.Split(full, ",")[0]) {
			t.Errorf("at noon: %s\nat midnight: %s", got, full)
		}

		h.Exec(`UPDATE asset SET model = '' WHERE id = $1`, id.Bytes())

		if got := plan(); got != "" {
			t.Errorf("without a model: %s", got)
		}

		h.Exec(`UPDATE asset SET model = 'Box 10' WHERE id = $1`, id.Bytes())
		h.Exec(`DELETE FROM dispatch_method WHERE site_id = $1`, h.site.Bytes())

		if got := plan(); got != "" {
			t.Errorf("without full schedule control: %s", got)
		}

		h.db.Environment = flex.Sandbox
	})
}

// TestBatteryPlan_ConsentSpans: of the boundary's readings a plan learns what was read in a span
// of the consent, and nothing of the time outside. An organisation that needs no consent learns
// all of it, which proves that there was something else to learn.
func TestBatteryPlan_ConsentSpans(t *testing.T) {
	const now = "2026-01-14T00:05:00Z"
	day := flex.DayAt(at(now))

	for _, c := range []struct {
		name string
		set  func(h *fixture)
		want string
	}{
		{"never given", func(h *fixture) { h.NoConsent() }, "154/0"},
		{"given four days ago", func(h *fixture) { h.NoConsent(); h.Consent(day.Add(-4).Start()) }, "100/0"},
		{"withdrawn four days ago", func(h *fixture) {
			h.NoConsent()
			h.Consent(day.Add(-30).Start())
			h.Exec(`UPDATE site SET consent_at = NULL`)

			h.Exec(`UPDATE consent_span SET to_at = $1`, day.Add(-4).Start().UnixMicro())
		}, "2000/0"},
		{"none is needed", func(h *fixture) { h.NoConsent(); h.Exec(`UPDATE org SET consent_exempt = TRUE`) }, "?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, now, func(h *fixture) {
				id := h.battery()
				meter := h.Asset(h.site, flex.BoundaryMeter, 0)
				var rs []flex.Reading
				for k := 1; k <= 14; k++ {
					kw := 0.2
					if k > 4 {
						kw = 4
					}

					for n := 1; n <= 48; n++ {
						rs = append(rs, flex.Reading{AssetID: meter, Span: day.Add(-k).Period(n).Span(), Label: flex.BoundaryImportPower, Value: flex.Micro(kw * 1e6)})
					}
				}
				if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) }); err != nil {
					t.Fatal(err)
				}
				c.set(h)

				h.runBatteries()
				err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
					b, err := tx.Battery(h.Context(), id)
					words := strings.Fields(b.Plan.Forecast)
					if got := b.Plan.Read; got.Device.IsZero() != (c.want == "154/0") || !got.Device.IsZero() && (got.Device != meter || len(got.Labels) != 1 || len(got.Spans) == 0) {
						t.Errorf("it says that it read %+v", got)
					}

					if c.want == "?" && (words[0] == "100/0" || words[0] == "154/0") || c.want != "?" && words[0] != c.want {
						t.Errorf("%q, want %s", words[0], c.want)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestBatteryLearnsItsHome: what the home drew at an hour is what is kept for it.
func TestBatteryLearnsItsHome(t *testing.T) {
	one(t, "2026-01-14T00:05:00Z", func(h *fixture) {
		id := h.battery()
		h.Consent(at("2025-01-01T00:00:00Z"))
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		var rs []flex.Reading
		day := flex.DayAt(at("2026-01-14T00:05:00Z"))

		for k := 1; k <= 14; k++ {
			for n := 1; n <= 48; n++ {
				p := day.Add(-k).Period(n)
				kw := 0.2

				if n >= 35 && n <= 42 { // 17:00 to 21:00
					kw = 2
				}

				rs = append(rs,
					flex.Reading{AssetID: meter, Span: p.Span(), Label: flex.BoundaryImportPower, Value: flex.Micro((kw - 0.5) * 1e6)},
					flex.Reading{AssetID: id, Span: p.Span(), Label: flex.BatteryInverterPower, Value: -300_000},
					flex.Reading{AssetID: meter, Span: p.Span(), Label: flex.SolarPower, Value: 200_000})
			}
		}

		err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) })
		if err != nil {
			t.Fatal(err)
		}

		h.runBatteries()
		err = h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
			b, err := tx.Battery(h.Context(), id)
			words := strings.Fields(b.Plan.Forecast)

			// Import, and what the battery and the roof gave: 0.2 or 2 kW of load.
			if len(words) != 96 || words[0] != "100/100" || words[36] != "1000/100" || words[48+36] != "1000/100" {
				t.Errorf("%q", words)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestBatteryIsHandedOver(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 10)
		count := func() []string {
			h.Helper()
			return h.Strings(`SELECT d.from_at || ' ' || a.power_w || ' ' || d.market FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id ORDER BY 1`)
		}

		h.runBatteries()

		if ds := count(); len(ds) != 0 {
			t.Errorf("nobody listens, and yet %v", ds)
		}

		h.listen()
		h.goTo("2026-01-14T23:00:00Z")
		h.runBatteries()

		// From 23:30 on it is cheap; all night there is time, and the modes for the half-hours
		// that were sent stay as they were.
		var sent []string

		for range 12 {
			h.runBatteries()
			h.wait(30 * time.Minute)
		}

		sent = count()
		if len(sent) == 0 {
			t.Fatal("nothing was handed over")
		}

		if n := h.Count(`SELECT count(*) FROM dispatch_asset WHERE without_market <> CAST(power_w AS TEXT)`); n != 0 {
			t.Errorf("%d of %d dispatches are other than the tariff alone would have had them", n, len(sent))
		}

		seen := map[string]bool{}
		for _, d := range sent {
			if seen[d] || !strings.HasSuffix(d, " wholesale") || strings.Contains(d, " -") {
				t.Errorf("%v", sent)
			}
			seen[d] = true
		}

		steps, err := h.service.DispatchPlan(h.Context(), h.Org, id)
		if err != nil || steps != nil {
			t.Errorf("%v, %v", steps, err)
		}
	})
}

// What a battery under a dynamic tariff would do without the market's prices is kept beside
// what it is asked for: serving the home by itself.
func TestBatteryIsHandedOver_WithoutMarket(t *testing.T) {
	each(t, "2026-01-14T15:10:00Z", func(h *fixture) {
		id := h.battery()
		h.tariff(id, flex.Tariff{Zone: "Europe/London", Type: flex.DynamicTariff})
		prices := slices.Repeat([]float64{50}, 110)

		for i := 82; i < 86; i++ { // 17:00 to 19:00 of the 14th
			prices[i] = 900
		}

		h.publish("2026-01-13T00:00:00Z", prices...)
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T15:05:00Z", "2026-01-14T15:05:00Z", 90)
		h.listen()

		for range 10 {
			h.runBatteries()
			h.wait(30 * time.Minute)
		}

		asked := h.Strings(`SELECT p.power_w || ' ' || p.without_market FROM dispatch_asset p ORDER BY p.event_id`)
		full := 0

		for _, line := range asked {
			power, without, _ := strings.Cut(line, " ")
			if power == without {
				t.Errorf("asked for %s W as it would have done by itself: %v", power, asked)
			}

			if strings.HasPrefix(power, "-29") { // of 3 kW
				full++
			}
		}

		if full < 2 {
			t.Errorf("asked for %v, not for full power in the dear hours", asked)
		}
	})
}

// TestWhatWasToldStands: a half-hour that was handed over is not planned otherwise.
func TestBattery_SentIsKept(t *testing.T) {
	one(t, "2026-01-14T23:00:00Z", func(h *fixture) {
		id := h.battery()
		h.read(id, flex.BatteryStateOfCharge, "2026-01-14T22:55:00Z", "2026-01-14T22:55:00Z", 10)
		h.listen()
		h.tariff(id, flex.Tariff{OffPeak: "23:30-24:00", Zone: "Europe/London", Type: flex.DualRate})
		h.runBatteries()

		steps, _, err := h.service.BatterySchedule(h.Context(), h.Org, id)
		if err != nil || modeAt(steps, "2026-01-14T23:30:00Z") != battery.ModeCharge {
			t.Fatalf("%s, %v", written(steps), err)
		}

		h.wait(time.Second)
		h.tariff(id, flex.Tariff{OffPeak: "12:00-16:00", Zone: "Europe/London", Type: flex.DualRate})
		h.runBatteries()

		steps, _, err = h.service.BatterySchedule(h.Context(), h.Org, id)
		if err != nil || modeAt(steps, "2026-01-14T23:30:00Z") != battery.ModeCharge || modeAt(steps, "2026-01-15T15:30:00Z") != battery.ModeCharge {
			t.Errorf("%s, %v", written(steps), err)
		}
	})
}

// listen sets a dispatch endpoint.
func (h *fixture) listen() {
	h.Helper()
	err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
		_, err := tx.PutEndpoint(h.Context(), flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: true})
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
}

// TestEvent_Tariff: a battery's tariff is taken, and a heater's is refused with what would be right.
func TestEvent_Tariff(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		tell := func(id flex.AssetID) error {
			return h.service.Event(h.Context(), h.Org, id, control.Event{Kind: control.TariffUpdate, Tariff: nightTariff("Europe/London")})
		}
		if err := tell(h.battery()); err != nil {
			t.Errorf("a battery: %v", err)
		}

		err := tell(h.Asset(h.site, flex.HeatPump, 3000))
		if flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "is a heat pump") || !strings.Contains(err.Error(), "a tariff is for a battery too") {
			t.Errorf("a heat pump: %v", err)
		}
	})
}
