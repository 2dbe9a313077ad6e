package control_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func (h *fixture) sessions() (found []store.Session) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		found, _, err = tx.Sessions(h.Context(), h.asset, 1000, 0)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return found
}

func TestEvent_OneSessionUnderConcurrency(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if err := h.service.Event(t.Context(), h.Org, h.asset, control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London")}); err != nil {
					t.Error(err)
				}
			})
		}

		wg.Wait()

		if s := h.sessions(); len(s) != 1 || s[0].Generation != 1 {
			t.Errorf(
				"200 plug-ins at once: %d sessions, generation %d",
				len(s),
				s[0].Generation,
			)
		}
	})
}

func TestEvent_Defaults(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn})

		e := h.look().Current.From
		if e.Need != 29_600 || e.Power != 7400 || !e.ReadyBy.Equal(at("2026-01-11T07:00:00Z")) || e.Mode != flex.Maximise || e.Origins != "default asset default" {
			t.Errorf("nothing told: %+v", e)
		}

		h.asset = h.Asset(h.site, flex.ElectricVehicle, 0)
		h.event(control.Event{Kind: control.PlugIn})

		if e := h.look().Current.From; e.Power != flex.DefaultPower || e.Need != 29_600 || e.Origins != "default default default" {
			t.Errorf("not even a power: %+v", e)
		}

		h.asset = h.Asset(h.site, flex.Charger, 7400)
		h.event(control.Event{Kind: control.PlugIn, VehicleRate: 3600})

		if e := h.look().Current.From; e.Power != 3600 || e.Need != 14_400 || e.Origins != "default event default" {
			t.Errorf("the car's rate: %+v", e)
		}
	})
}

func TestEvent_SiteTariff(t *testing.T) {
	each(t, "2026-07-10T18:00:00Z", func(h *fixture) {
		h.Exec(`UPDATE site SET tariff_type = 'dual_rate', cheap_start = '00:30:00', cheap_end = '04:30:00'`)
		h.event(control.Event{Kind: control.PlugIn})

		s := h.look().Current
		if s.From.Tariff.OffPeak != "00:30-04:30" || s.From.Origins != "default asset site" || !s.Steps[1].From.Equal(at("2026-07-10T23:30:00Z")) {
			t.Errorf("%+v", s)
		}
	})
}

func TestEvent_ReadyBy(t *testing.T) {
	local := func(s string) *flex.WallTime { w, _ := flex.ParseWallTime(s); return &w }
	for _, c := range []struct {
		name, now string
		intent    flex.Intent
		zone      string
		want      string
	}{
		{"the next morning", "2026-01-10T22:00:00Z", flex.Intent{ReadyByLocal: local("07:00")}, "Europe/London", "2026-01-11T07:00:00Z"},
		{"the same morning", "2026-01-10T06:59:59Z", flex.Intent{ReadyByLocal: local("07:00")}, "Europe/London", "2026-01-10T07:00:00Z"},
		{"exactly now is tomorrow", "2026-01-10T07:00:00Z", flex.Intent{ReadyByLocal: local("07:00")}, "Europe/London", "2026-01-11T07:00:00Z"},
		{"in the tariff's zone", "2026-01-10T22:00:00Z", flex.Intent{ReadyByLocal: local("07:00")}, "Europe/Paris", "2026-01-11T06:00:00Z"},
		{"the date of ready_by is nothing", "2026-01-10T22:00:00Z", flex.Intent{ReadyBy: at("2030-07-01T06:30:00Z")}, "Europe/London", "2026-01-11T07:30:00Z"},
		{"the local time goes first", "2026-01-10T22:00:00Z", flex.Intent{ReadyBy: at("2030-01-01T06:30:00Z"), ReadyByLocal: local("09:00")}, "Europe/London", "2026-01-11T09:00:00Z"},
		{"the first of two 01:30", "2026-10-24T22:00:00Z", flex.Intent{ReadyByLocal: local("01:30")}, "Europe/London", "2026-10-25T00:30:00Z"},
		{"the end of the gap", "2026-03-28T22:00:00Z", flex.Intent{ReadyByLocal: local("01:30")}, "Europe/London", "2026-03-29T01:00:00Z"},
		{"a fraction of a second", "2026-01-10T22:00:00Z", flex.Intent{ReadyBy: at("2026-01-10T07:00:00.75Z")}, "Europe/London", "2026-01-11T07:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, c.now, func(h *fixture) {
				c.intent.Need, c.intent.Mode = 10_000, flex.Minimise
				h.event(control.Event{Kind: control.PlugIn, Intent: &c.intent, Tariff: nightTariff(c.zone)})

				s := h.look().Current
				if !s.From.ReadyBy.Equal(at(c.want)) || !s.End().Equal(at(c.want)) {
					t.Errorf("ready by %v, ends %v, want %s", s.From.ReadyBy, s.End(), c.want)
				}
			})
		})
	}
}

// TestEvent_WhenOneIsSent counts the schedules that each event leads to.
func TestEvent_WhenOneIsSent(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		generation := int64(0)
		step := func(what string, made int64, ev control.Event) {
			t.Helper()
			h.wait(10 * time.Minute)
			h.event(ev)

			generation += made
			if h.look().Session.Generation != generation {
				t.Fatalf(
					"%s: generation %d, want %d",
					what,
					h.look().Session.Generation,
					generation,
				)
			}
		}

		night, other := nightTariff("Europe/London"), &flex.Tariff{OffPeak: "01:00-05:00", Zone: "Europe/London", Type: flex.DualRate}
		step(
			"tariff, unplugged",
			0,
			control.Event{Kind: control.TariffUpdate, Tariff: night},
		)
		step(
			"intent, unplugged",
			0,
			control.Event{Kind: control.IntentUpdate, Intent: need(30, flex.Maximise)},
		)
		step("plug-out, unplugged", 0, control.Event{Kind: control.PlugOut})
		step("plug-in", 1, control.Event{Kind: control.PlugIn})
		step("plug-in again", 0, control.Event{Kind: control.PlugIn})
		step(
			"plug-in again, all the same",
			0,
			control.Event{Kind: control.PlugIn, Tariff: night, Intent: need(30, flex.Maximise)},
		)
		step(
			"the same intent",
			0,
			control.Event{Kind: control.IntentUpdate, Intent: need(30, flex.Maximise)},
		)
		step(
			"another intent, the same steps",
			1,
			control.Event{Kind: control.IntentUpdate, Intent: need(20, flex.Maximise)},
		)
		step(
			"another intent, other steps",
			1,
			control.Event{Kind: control.IntentUpdate, Intent: need(20, flex.Minimise)},
		)

		step(
			"another tariff",
			1,
			control.Event{Kind: control.TariffUpdate, Tariff: other},
		)
		step(
			"the same tariff",
			0,
			control.Event{Kind: control.TariffUpdate, Tariff: other},
		)
		step(
			"plug-in with another tariff",
			1,
			control.Event{Kind: control.PlugIn, Tariff: night},
		)
		step(
			"no charge-now to delete",
			0,
			control.Event{Kind: control.ChargeNowDeleted},
		)
		step(
			"charge-now",
			1,
			control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T21:00:00Z")},
		)
		step(
			"a longer one",
			1,
			control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T22:00:00Z")},
		)
		step("deleted", 1, control.Event{Kind: control.ChargeNowDeleted})
		step("plug-out", 0, control.Event{Kind: control.PlugOut})
		step(
			"charge-now, unplugged",
			0,
			control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T23:00:00Z")},
		)
		step("plug-in with it", 1, control.Event{Kind: control.PlugIn})

		if c := h.look(); c.Current.Steps[0].Limit != flex.NoLimit || !c.Current.Steps[0].To.Equal(at("2026-01-10T23:00:00Z")) {
			t.Errorf("charge-now asked for just before plug-in: %v", c.Current.Steps)
		}

		step("plug-out", 0, control.Event{Kind: control.PlugOut})
		step(
			"another car: charge-now was not for it",
			1,
			control.Event{Kind: control.PlugIn},
		)

		if c := h.look(); c.Current.Steps[0].Limit != 0 {
			t.Errorf("charge-now of the car before: %v", c.Current.Steps)
		}
	})
}

// TestEvent_SameBesideReadyBy sends an intent again: with another ready_by, which has no
// meaning if there is a local time, and without a local time but with the same time of day. No
// schedule is made, and what was charged since then still counts.
func TestEvent_SameBesideReadyBy(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Intent: need(30, flex.Minimise), Tariff: nightTariff("Europe/London")})

		for _, now := range []string{"2026-01-10T23:00:00Z", "2026-01-11T02:00:00Z", "2026-01-11T05:00:00Z"} {
			h.goTo(now)
			again := need(30, flex.Minimise)
			again.ReadyBy = at(now)
			h.event(control.Event{Kind: control.IntentUpdate, Intent: again})

			if c := h.look(); c.Session.Generation != 1 || !c.Intent.ReadyBy.Equal(at(now)) {
				t.Errorf(
					"%s: generation %d, ready_by %v",
					now,
					c.Session.Generation,
					c.Intent.ReadyBy,
				)
			}
		}

		summer := need(30, flex.Minimise)
		summer.ReadyByLocal, summer.ReadyBy = nil, at("2026-07-01T06:00:00Z")
		h.event(control.Event{Kind: control.IntentUpdate, Intent: summer})
		if c := h.look(); c.Session.Generation != 1 {
			t.Errorf("07:00 by the clock of July: generation %d", c.Session.Generation)
		}

		summer.ReadyBy = at("2026-07-01T05:30:00Z")
		h.event(control.Event{Kind: control.IntentUpdate, Intent: summer})
		if c := h.look(); c.Session.Generation != 2 || !c.Session.ReadyBy.Equal(at("2026-01-11T06:30:00Z")) {
			t.Errorf("06:30 by it: %+v", c.Session)
		}
	})
}

// TestIntent_TimeOfDayAlone: if an intent has only a time of day, as from a household's page,
// ready_by is its next instant.
func TestIntent_TimeOfDayAlone(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		asked := need(10, flex.Minimise)
		asked.ReadyBy = time.Time{}
		h.event(control.Event{Kind: control.IntentUpdate, Intent: asked})

		in, err := h.service.Intent(h.Context(), h.Org, h.asset)
		if err != nil || !in.ReadyBy.Equal(at("2026-01-11T07:00:00Z")) {
			t.Errorf("ready_by %v, %v", in.ReadyBy, err)
		}
	})
}

func TestEvent_Flicker(t *testing.T) {
	for _, c := range []struct {
		name     string
		out      time.Duration
		rate     flex.Watts
		sessions int
	}{
		{"a second", time.Second, 0, 1},
		{"at the limit", control.FlickerMax, 0, 1},
		{"beyond it", control.FlickerMax + time.Microsecond, 0, 2},
		{"the same car", time.Second, 3600, 1},
		{"another car", time.Second, 11_000, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				h.event(control.Event{Kind: control.PlugIn, VehicleRate: 3600, Tariff: nightTariff("Europe/London")})

				h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T19:00:00Z")})
				h.wait(time.Second)
				h.event(control.Event{Kind: control.PlugOut})
				h.wait(c.out)
				h.event(control.Event{Kind: control.PlugIn, VehicleRate: c.rate})

				now := h.look()
				if n := len(h.sessions()); n != c.sessions || !now.Open() || now.Session.Generation != 3 {
					t.Errorf(
						"%d sessions, want %d; generation %d",
						n,
						c.sessions,
						now.Session.Generation,
					)
				}

				if charging := now.Current.Steps[0].Limit == flex.NoLimit; charging != (c.sessions == 1) {
					t.Errorf("charge-now holds: %v", charging)
				}
			})
		})
	}
}

func TestEvent_AnotherCar(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, VehicleRate: 3600})
		h.wait(time.Hour)
		h.event(control.Event{Kind: control.PlugIn, VehicleRate: 7000})

		s := h.sessions()
		if len(s) != 2 || !s[1].PluggedOutAt.Equal(s[0].PluggedInAt) || s[0].VehicleRate != 7000 || s[0].Generation != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A car that stays after its ready-by is unlimited; the next event plans its next night.
func TestEvent_AfterReadyBy(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(5, flex.Minimise)})
		h.goTo("2026-01-11T20:00:00Z")
		h.event(control.Event{Kind: control.PlugIn})

		c := h.look()
		if len(h.sessions()) != 1 || c.Session.Generation != 2 || !c.Session.ReadyBy.Equal(at("2026-01-12T07:00:00Z")) {
			t.Errorf("%+v", c.Session)
		}
	})
}

func TestEvent_UncontrolledSite(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		site := h.Site(flex.LimitedPauseMethod)
		h.asset = h.Asset(site, flex.Charger, 7400)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(10, flex.Minimise)})

		if c := h.look(); !c.Open() || c.Session.Generation != 0 || c.Intent == nil {
			t.Errorf("%+v", c)
		}

		h.Exec(
			`INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, 'full_asset_schedule_control', 0)`,
			h.Org.Bytes(),
			site.Bytes(),
		)
		h.Exec(
			`INSERT INTO enrolment (org_id, site_id, proposition, state, since) VALUES ($1, $2, 'full_asset_schedule_control', 'withdrawn', 0)`,
			h.Org.Bytes(),
			site.Bytes(),
		)
		h.event(control.Event{Kind: control.PlugIn})

		if c := h.look(); c.Session.Generation != 0 {
			t.Errorf("withdrawn, and yet planned: %+v", c.Session)
		}

		h.Exec(`UPDATE enrolment SET state = 'enrolled'`)
		h.event(control.Event{Kind: control.PlugIn}) // as sent at enrolment

		if c := h.look(); c.Session.Generation != 1 || len(h.sessions()) != 1 {
			t.Errorf("enrolled while plugged in: %+v", c.Session)
		}
	})
}

func TestEvent_Refused(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		battery := h.Asset(h.site, flex.Battery, 5000)

		for _, c := range []struct {
			name  string
			asset flex.AssetID
			ev    control.Event
			want  flex.Kind
			says  string
		}{
			{"unknown asset", flex.AssetID{1}, control.Event{Kind: control.PlugIn}, flex.NotFound, "not found or not authorized"},
			{"a battery", battery, control.Event{Kind: control.PlugIn}, flex.Malformed, "is a battery"},
			{"bad zone", h.asset, control.Event{Kind: control.PlugIn, Tariff: &flex.Tariff{OffPeak: "00:00-05:00", Zone: "Mars/Base"}}, flex.Malformed, "IANA"},
			{"bad off-peak", h.asset, control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: "Mo-Fr 00:00-05:00", Zone: "UTC"}}, flex.Malformed, "HH:MM"},
			{"no tariff", h.asset, control.Event{Kind: control.TariffUpdate}, flex.Malformed, "must carry tariff"},
			{"no intent", h.asset, control.Event{Kind: control.IntentUpdate}, flex.Malformed, "must carry intent"},
			{"no end", h.asset, control.Event{Kind: control.ChargeNow}, flex.Malformed, "must carry end_at"},
			{"end past", h.asset, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T18:00:00Z")}, flex.Malformed, "is past"},
			{"end far", h.asset, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T18:00:01Z").Add(control.ChargeNowMax)}, flex.Malformed, "7 days"},
			{"end with plug-out", h.asset, control.Event{Kind: control.PlugOut, EndAt: at("2026-01-10T19:00:00Z")}, flex.Malformed, "no end_at"},
			{"intent with plug-out", h.asset, control.Event{Kind: control.PlugOut, Intent: need(1, flex.Minimise)}, flex.Malformed, "carries no intent"},
		} {
			err := h.service.Event(t.Context(), h.Org, c.asset, c.ev)
			if flex.KindOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
		}

		if c := h.look(); c.Session.Number != 0 || c.Intent != nil || c.Tariff != nil {
			t.Errorf("refused events left %+v", c)
		}

		h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T18:00:00Z").Add(control.ChargeNowMax)})

		if err := h.service.Event(t.Context(), h.Org, h.asset, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-10T18:00:00Z")}); err == nil {
			t.Error("accepted")
		}

		if !h.look().ChargeNow.To.Equal(at("2026-01-17T18:00:00Z")) {
			t.Errorf("a refused charge-now changed the one before")
		}
	})
}

func TestStopScheduling(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London")})
		idle := h.Asset(h.site, flex.Charger, 7400)
		h.wait(time.Hour)
		stop := func() {
			t.Helper()
			err := h.db.Write(
				t.Context(),
				h.Org,
				func(tx *store.Tx) error { return tx.StopScheduling(t.Context(), h.asset, idle) },
			)
			if err != nil {
				t.Fatal(err)
			}
		}

		stop()

		c := h.look()
		if c.Open() || c.Current.Cause != store.CauseFreed || c.Current.Generation != 2 {
			t.Fatalf("%+v", c)
		}

		if s := c.Current.Steps; len(s) != 1 || s[0].Limit != flex.NoLimit || !s[0].From.Equal(at("2026-01-10T19:00:00Z")) || !s[0].To.Equal(at("2026-01-11T07:00:00Z")) {
			t.Errorf("freed by %v", s)
		}

		stop()

		if g := h.look().Session.Generation; g != 2 {
			t.Errorf("stopped twice, generation %d", g)
		}

		const waits = `SELECT count(*) FROM outbox WHERE subject = $1 AND turn_at IS NOT NULL AND expires_at > 0`
		if n := h.Count(waits, h.asset.Bytes()); n != 1 {
			t.Errorf("stopped twice, %d pushes wait that set the car free", n)
		}

		// A car that may charge freely from here on needs no message.
		h.wait(time.Hour)
		h.event(control.Event{Kind: control.PlugIn, Tariff: &flex.Tariff{OffPeak: "00:00-24:00", Zone: "UTC", Type: flex.SingleRate}})
		stop()

		if c := h.look(); c.Open() || c.Session.Generation != 3 {
			t.Errorf("%+v", c.Session)
		}
	})
}

// TestEvent_Resumed ends control while a car is plugged in. If the site is enrolled again, the
// car is planned at its next event. If it is not, after a plug-out, or if an operator released
// the car, it is planned at its next plug-in only.
func TestEvent_Resumed(t *testing.T) {
	for name, c := range storetest.InOrder(map[string]struct {
		before   []control.Kind // after the end of control
		enrolled bool           // again, since
		next     control.Kind
		planned  bool
	}{
		"enrolled again, an intent":     {nil, true, control.IntentUpdate, true},
		"enrolled again, a tariff":      {nil, true, control.TariffUpdate, true},
		"enrolled again, a plug-in":     {nil, true, control.PlugIn, true},
		"plugged out before":            {[]control.Kind{control.PlugOut}, true, control.IntentUpdate, false},
		"released, an intent":           {nil, false, control.IntentUpdate, false},
		"released, a plug-in":           {nil, false, control.PlugIn, true},
		"enrolled again, a plug-out":    {nil, true, control.PlugOut, false},
		"back, and then another intent": {[]control.Kind{control.PlugOut, control.PlugIn}, true, control.IntentUpdate, true},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-10T18:00:00Z", func(h *fixture) {
				send := func(kind control.Kind) {
					ev := control.Event{Kind: kind}

					switch kind {
					case control.PlugIn, control.IntentUpdate:
						ev.Intent = need(10, flex.Minimise)
					case control.TariffUpdate:
						ev.Tariff = nightTariff("Europe/London")
					}
					h.event(ev)
				}

				h.Exec(`INSERT INTO enrolment (org_id, site_id, proposition, state, since) VALUES ($1, $2, $3, 'enrolled', $4)`,
					h.Org.Bytes(), h.site.Bytes(), string(flex.FullAssetSchedule), at("2026-01-01T00:00:00Z").UnixMicro())
				send(control.PlugIn)
				h.wait(time.Hour)
				err := h.db.Write(
					t.Context(),
					h.Org,
					func(tx *store.Tx) error { return tx.StopScheduling(t.Context(), h.asset) },
				)
				if err != nil {
					t.Fatal(err)
				}

				first := h.look().Session.Number
				h.wait(time.Hour)
				if c.enrolled {
					h.Exec(`UPDATE enrolment SET since = $1`, h.micro.Load())
				}

				for _, kind := range c.before {
					send(kind)
				}

				send(c.next)
				got := h.look()
				if planned := got.Open() && got.Current.Generation > 0; planned != c.planned {
					t.Errorf(
						"planned: %v; session %d after %d",
						planned,
						got.Session.Number,
						first,
					)
				}
			})
		})
	}
}
