package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// On which publications a fleet was planned is forgotten with its time, but of prices that are not over: the fleet would be planned on
// them again.
func TestPurge_Waves(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.publish("2026-01-10T18:00:00Z", night(13)...)
		h.Exec(`UPDATE publication SET to_at = $1 WHERE published_at = (SELECT max(published_at) FROM publication)`, at("2027-01-01T00:00:00Z").UnixMicro())
		h.Exec(`INSERT INTO wave (org_id, publication_id, begun_at) SELECT $1, id, 1 FROM publication`, h.Org.Bytes())

		for _, step := range []struct {
			wait time.Duration
			left int
		}{{control.Retention - time.Hour, 2}, {2 * time.Hour, 1}} {
			h.wait(step.wait)
			if _, err := h.service.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := h.Count(`SELECT count(*) FROM wave`); n != step.left {
				t.Errorf(
					"after %s more the fleet was planned on %d publications, want %d",
					step.wait,
					n,
					step.left,
				)
			}
		}
	})
}

// Of a session that ended, the newest schedule stays and those before it go with their time,
// once its flex events have been looked for; of one that goes on, all stay, with its prices.
func TestPurge(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		count := func(table string) int { return h.Count(`SELECT count(*) FROM ` + table) }
		purge := func() int {
			t.Helper()

			r, err := h.service.Purge(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			return r.Count
		}

		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})

		for kwh := range 3 {
			h.wait(time.Minute)
			h.event(control.Event{Kind: control.IntentUpdate, Intent: need(5+float64(kwh), flex.Minimise)})
		}

		h.event(control.Event{Kind: control.PlugOut})
		last := h.look().Session
		open := h.Asset(h.site, flex.Charger, 7400)
		ended, asset := h.asset, open
		h.asset = asset
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(9, flex.Minimise)})
		h.Exec(`INSERT INTO outbox (subject, org_id, endpoint, kind, event_id, generation, queued_at, expires_at) VALUES ($1, $2, 'schedule', 'test', $1, 1, $3, $3)`,
			flex.EventID{9}.Bytes(), h.Org.Bytes(), h.micro.Load())

		schedules := count("schedule")
		events := count("asset_event")
		curves := count("curve")

		outbox := count("outbox")
		if schedules != 6 || events != 7 || curves != 1 || outbox != 3 {
			t.Fatalf(
				"%d schedules, %d events, %d curves, %d in the outbox",
				schedules,
				events,
				curves,
				outbox,
			)
		}

		h.wait(control.Retention - time.Hour)

		if did := purge(); did != 0 {
			t.Errorf("%d forgotten before their time", did)
		}

		h.wait(2 * time.Hour)
		purge() // flex events have not been looked for

		if n := count("schedule"); n != schedules {
			t.Errorf(
				"%d schedules, want %d until flex events have been looked for",
				n,
				schedules,
			)
		}

		if n := count("asset_event"); n != 0 {
			t.Errorf("%d events are kept", n)
		}

		if n := count("outbox"); n != 2 {
			t.Errorf("%d in the outbox, want those of the two assets", n)
		}

		h.Exec(`UPDATE reckoning SET detect_at = NULL`)

		if did := purge(); did != 1 {
			t.Errorf("%d forgotten, want what one session superseded", did)
		}

		if n := count("schedule"); n != 3 {
			t.Errorf("%d schedules, want one of the ended session and two of the open one", n)
		}

		if n := count("curve"); n != 1 {
			t.Errorf("%d curves, want that of the open session", n)
		}

		h.asset = ended
		if c := h.look(); c.Current.EventID != last.EventID || !c.Current.Before.IsZero() {
			t.Errorf("the ended session's schedule is %+v", c.Current)
		}

		if did := purge(); did != 0 {
			t.Errorf("%d forgotten once more", did)
		}

		h.asset = open
		if _, err := h.service.Explanation(t.Context(), h.Org, open); err != nil {
			t.Errorf("the open session's schedule cannot be explained: %v", err)
		}

		h.event(control.Event{Kind: control.PlugOut})
		h.Exec(`UPDATE reckoning SET detect_at = NULL`)
		h.wait(control.Retention + time.Hour)
		purge()

		if s, c := count("schedule"), count("curve"); s != 2 || c != 0 {
			t.Errorf("%d schedules and %d curves, want 2 and 0", s, c)
		}
	})
}
