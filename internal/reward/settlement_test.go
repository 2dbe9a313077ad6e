package reward_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// prices publishes one price for all half-hours of a span, missing if it is NaN.
func (y *fixture) prices(t *testing.T, span flex.Span, gbp float64) {
	t.Helper()
	var ps []flex.PricedPeriod
	for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
		ps = append(ps, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(gbp), Known: !math.IsNaN(gbp)})
	}
	err := y.db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{Source: "test", PublishedAt: y.now, Span: span}, ps)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kwh keeps readings of a day's settlement periods, in kWh by number.
func (y *fixture) kwh(t *testing.T, d flex.Day, values map[string]string) {
	t.Helper()
	var rs []flex.Reading
	for n, v := range values {
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}

		e, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, flex.Reading{AssetID: y.asset, Span: d.Period(i).Span(), Label: flex.ChargerEnergy, Value: flex.Micro(math.Round(e * 1e6))})
	}
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
}

// events runs the background jobs and tells the site's flex events.
func (y *fixture) events(t *testing.T) string {
	t.Helper()
	for i := 0; ; i++ {
		r, err := y.service.SettleEvents(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if r.Count == 0 {
			break
		}
		if i == 10 {
			t.Fatal("the round still found work after ten runs")
		}
	}

	events, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for _, e := range events {
		s := fmt.Sprintf("%s %d-%d", e.Day, e.First, e.Last)
		if e.Flex != nil {
			s += fmt.Sprintf(" %d Wh", *e.Flex)
		}

		s += fmt.Sprintf(" est %d", e.Estimated)
		if e.Final != nil {
			s += fmt.Sprintf(" final %d", *e.Final)
		}
		if e.Missing > 0 {
			s += fmt.Sprintf(" missing %d", e.Missing)
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

type vector struct {
	History   map[string]map[string]string `json:"history_kwh"`
	EventDays []string                     `json:"event_days_excluded"`
	Metered   map[string]string            `json:"metered_event_day"`
}

// settledMonday is pausedMonday with its readings, settled once on some settings.
func settledMonday(t *testing.T, url string, settings ...string) (*fixture, flex.Day) {
	t.Helper()
	y, monday, v := pausedMonday(t, url)
	if len(settings) > 0 {
		y.set(t, settings...)
	}

	y.kwh(t, monday, v.Metered)
	y.now = monday.Period(36).End()
	y.events(t)

	return y, monday
}

// pausedMonday plays the worked example of the baseline vectors: sixty days of readings, two
// days that held an event, and a pause on a Monday evening.
func pausedMonday(t *testing.T, url string) (*fixture, flex.Day, *vector) {
	t.Helper()
	var v vector
	b, err := os.ReadFile("../settle/testdata/baseline_bl01.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	y := open(t, url)
	y.set(t, "user_share=0.5")
	monday := flex.Day{Year: 2025, Month: 2, Dom: 3}
	y.now = monday.Start().Add(time.Hour)
	for d, values := range v.History {
		day, err := flex.ParseDay(d)
		if err != nil {
			t.Fatal(err)
		}
		y.kwh(t, day, values)
	}

	for i, d := range v.EventDays {
		day, err := flex.ParseDay(d)
		if err != nil {
			t.Fatal(err)
		}
		y.exec(t, `INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated)
			VALUES ($1, $2, $3, $4, $5, 1, 1, $6, $7, '-1', '1', 0, 0)`, flex.FlexEventID{byte(i)}.Bytes(), y.org.Bytes(), flex.SiteID{8}.Bytes(), y.asset.Bytes(), d,
			day.Period(1).Start().UnixMicro(), day.Period(1).End().UnixMicro())
	}

	y.prices(t, monday.Span(), 250)
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, y.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, flex.Span{From: monday.Period(35).Start(), To: monday.Period(36).End()}, 0)
	})
	return y, monday, &v
}

// An event that is found late takes its day out of the baselines of later events: they are
// looked at again, once, and another one that is not kept marks nothing.
func TestSettleEvents_FoundLate(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		due := func() int {
			return storetest.At(t, y.db, url).Count(`SELECT count(*) FROM flex_event WHERE version > 0 AND look_at = 0`)
		}
		find := func(day flex.Day) {
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				e := store.FlexEvent{SiteID: y.site, AssetID: y.asset, Day: day, First: 1, Last: 1, Span: day.Period(1).Span()}
				e.Meant, e.Nominated = []flex.WattHours{-100}, []flex.WattHours{100}
				_, err := tx.AddFlexEvent(ctx, &e)
				return err
			})
		}

		find(monday.Add(1)) // a later day is no baseline
		if n := due(); n != 0 {
			t.Errorf("%d events are due after an event of a later day", n)
		}

		find(monday.Add(-3))
		if n := due(); n != 1 {
			t.Errorf("%d events are due after an event of a day of their baseline, want 1", n)
		}

		y.events(t)
		find(monday.Add(-3))
		if n := due(); n != 0 {
			t.Errorf("%d events are due after an event that was there", n)
		}
	})
}

// The life of a flex event: found, estimated, settled when its last reading comes, corrected,
// and final when the next month is over; and the money follows.
func TestSettleEvents_FromPauseToFinal(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.now = monday.Period(36).End().Add(-time.Second)
		if got := y.events(t); got != "" {
			t.Errorf("before the pause is over: %s", got)
		}
		y.now = monday.Period(36).End()
		const meant = "2025-02-03 35-36 est 1850000 missing 2" // 7.4 kW for an hour
		if got := y.events(t); got != meant {
			t.Errorf("without readings: %s, want %s", got, meant)
		}

		last := v.Metered["36"]
		delete(v.Metered, "36")
		y.kwh(t, monday, v.Metered)
		if got := y.events(t); got != "2025-02-03 35-36 est 1850000 missing 1" || y.history(t) != "" {
			t.Errorf("with a reading missing: %s; %s", got, y.history(t))
		}
		y.now = y.now.Add(time.Hour)
		y.kwh(t, monday, map[string]string{"36": last})
		const settled = "2025-02-03 35-36 -1632 Wh est 408000"
		if got := y.events(t); got != settled {
			t.Errorf("with all readings: %s, want %s", got, settled)
		}

		if got := y.history(t); got != "flex event 20p" { // half of 40.8 p
			t.Errorf("credited: %s", got)
		}
		before := y.now
		y.now = y.now.Add(time.Hour)
		y.kwh(t, monday, map[string]string{"36": "0.190"}) // corrected
		if got := y.events(t); got != "2025-02-03 35-36 -1532 Wh est 383000" || y.history(t) != "flex event 20p, correction -1p" {
			t.Errorf("corrected: %s; %s", got, y.history(t))
		}

		y.now = clock("2025-03-31 22:59") // 23:59 in London
		y.prices(t, monday.Span(), 300)
		if got := y.events(t); got != "2025-02-03 35-36 -1532 Wh est 459600" || y.history(t) != "flex event 20p, correction -1p, flex period top-up 4p" {
			t.Errorf("a revised price counts at once: %s; %s", got, y.history(t))
		}

		y.now = clock("2025-03-31 23:00")
		if got := y.events(t); got != "2025-02-03 35-36 -1532 Wh est 459600 final 459600" {
			t.Errorf("final: %s", got)
		}
		if got := y.history(t); got != "flex event 20p, correction -1p, flex period top-up 4p" {
			t.Errorf("in the end: %s", got)
		}
		compareRuns(t, y, monday, before)
	})
}

// An event that was credited, and whose prices are not there when its month is final, as in a
// flexd that took its organisation in, keeps its credit and waits for them.
func TestSettleEvents_FinalWithoutPrices(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		y.exec(t, `DELETE FROM price`)
		y.now = clock("2025-03-31 23:00")
		if got := y.events(t); strings.Contains(got, "final") || y.history(t) != "flex event 20p" {
			t.Errorf("without prices: %s; %s", got, y.history(t))
		}
		y.prices(t, monday.Span(), 250)
		if got := y.events(t); got != "2025-02-03 35-36 -1632 Wh est 408000 final 408000" || y.history(t) != "flex event 20p" {
			t.Errorf("with prices again: %s; %s", got, y.history(t))
		}
	})
}

// One that lacks a reading then too is not looked at in each run from there on.
func TestSettleEvents_FinalWithoutPriceAndReading(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url)
		y.exec(t, `DELETE FROM price`)
		y.exec(t, `DELETE FROM reading WHERE at = $1`, monday.Period(35).Start().UnixMicro())
		y.now = clock("2025-03-31 23:00")
		y.events(t)
		events, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
		if err != nil || len(events) != 1 || events[0].Final != nil || !events[0].LookAt.After(y.now) {
			t.Errorf("%+v, %v; want it to be looked at later", events, err)
		}
	})
}

// An event that waits for a half-hour is looked at once that is metered in full, from powers
// in pieces, the last first, and by one job alone of those that found it due.
func TestSettleEvents_WokenByTheLastPiece(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, _ := pausedMonday(t, url)
		y.now = monday.Period(36).End()
		y.events(t)
		due := func() (ids []flex.FlexEventID) {
			y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
				ids, err = tx.DueFlexEvents(ctx, 10)
				return err
			})
			return ids
		}

		from := monday.Period(35).Start()
		for i := range 6 {
			if ids := due(); len(ids) != 0 {
				t.Errorf("due with %d pieces", i)
			}
			at := from.Add(time.Duration(5-i) * 10 * time.Minute)
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.PutReadings(ctx, []flex.Reading{{AssetID: y.asset, Span: flex.Span{From: at, To: at.Add(10 * time.Minute)}, Label: flex.BatteryInverterPower, Value: 1e6}})
			})
		}

		ids := due()
		if got := y.events(t); len(ids) != 1 || got != "2025-02-03 35-36 0 Wh est 0" { // no day before was metered so: nothing is paid
			t.Errorf("due %d; %s", len(ids), got)
		}
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			held, err := tx.LockFlexEvents(ctx, ids)
			if len(held) != 0 {
				t.Error("due again after it was settled")
			}
			return err
		})
	})
}

// compareRuns settles the day again, as it was known before the correction and now.
func compareRuns(t *testing.T, y *fixture, day flex.Day, before time.Time) {
	t.Helper()
	again := func(knownAt time.Time) store.Run {
		t.Helper()
		run, err := y.service.Resettle(t.Context(), y.org, reward.Resettlement{Site: y.site, From: day, To: day, KnownAt: knownAt})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}

	runs, err := y.service.Runs(t.Context(), y.org, 100)
	if err != nil {
		t.Fatal(err)
	}

	// The runs after it, newest first: final, a revised price, a correction.
	then := runs[3]
	if then.KnownAt != before {
		t.Fatalf("the run is of %s, want %s", then.KnownAt, before)
	}
	old, now := again(before), again(time.Time{})
	if old.Hash != then.Hash {
		t.Errorf("settled again as of %s from inputs %s, then from %s", before, old.Hash, then.Hash)
	}

	if same, err := y.service.Compare(t.Context(), y.org, then.ID, old.ID); err != nil || len(same) != 0 {
		t.Errorf("the same inputs gave different results: %v %v", same, err)
	}
	changes, err := y.service.Compare(t.Context(), y.org, old.ID, now.ID)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, c := range changes {
		got = append(got, c.What)
	}
	if strings.Join(got, ", ") != "period 35, period 36, final, flex, gross, credit, kept" {
		t.Errorf("changes %v", changes)
	}

	if _, err := y.service.Compare(t.Context(), y.org, old.ID, flex.RunID{1}); flex.KindOf(err) != flex.NotFound {
		t.Errorf("a run that never was: %v", err)
	}
	if h := y.history(t); h != "flex event 20p, correction -1p, flex period top-up 4p" {
		t.Errorf("settling again posted: %s", h)
	}
}

// Boundary metering: the site's registers settle the event, whichever asset they came with,
// unless the asset's own meter was qualified when the event was found.
func TestSettleEvents_Metering(t *testing.T) {
	for _, qualified := range []bool{false, true} {
		y, monday, v := pausedMonday(t, storetest.SQLite(t))
		y.kwh(t, monday, v.Metered)
		y.boundary(t, monday)
		y.exec(t, `INSERT INTO model (key, name, type, cop11) VALUES ('leaf', 'Leaf', 'electric_vehicle', TRUE)`)
		want := "2025-02-03 35-36 -1400 Wh est 350000"
		if qualified {
			y.exec(t, `UPDATE asset SET installed_on = '2024-01-01'`)
			want = "2025-02-03 35-36 -1632 Wh est 408000"
		}

		y.now = monday.Period(36).End()
		if got := y.events(t); got != want {
			t.Errorf("qualified %t: %s", qualified, got)
		}
		y.exec(t, `UPDATE asset SET installed_on = '2024-01-01'`) // too late for the event
		y.exec(t, `UPDATE flex_event SET look_at = 0 WHERE look_at IS NOT NULL`)
		if got := y.events(t); got != want {
			t.Errorf("qualified %t, and later: %s", qualified, got)
		}
	}
}

// A session steered from the evening into the night makes two events, but only if the
// client took the schedule over.
func TestSettleEvents_Session(t *testing.T) {
	for _, tt := range []struct{ name, state, callback, want string }{
		{"taken over", "accepted", "", "2026-01-14 37-39 est 1110000 missing 3, 2026-01-14 47-48 est -370000 missing 2, 2026-01-15 1-1 est -185000 missing 1"},
		{"refused", "rejected", "", ""},
		{"taken over, and failed at the charger", "accepted", "FAILED", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := open(t, storetest.SQLite(t))
			y.now = clock("2026-01-14 18:00")
			y.prices(t, flex.Span{From: y.now, To: clock("2026-01-14 21:00")}, 100)
			y.prices(t, flex.Span{From: clock("2026-01-14 21:00"), To: clock("2026-01-15 07:00")}, 50)
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				c, err := tx.PlanningState(ctx, y.asset)
				if err != nil {
					return err
				}

				if err := tx.OpenSession(ctx, &c, 0); err != nil {
					return err
				}
				s := store.Schedule{Cause: store.CausePlugIn, From: store.PlanInputs{
					CountFrom: y.now, ReadyBy: clock("2026-01-15 07:00"), Need: 11_100, Power: 7400, Mode: flex.Minimise,
				}}
				for _, step := range []struct {
					from, to string
					limit    flex.Watts
				}{{"2026-01-14 18:00", "2026-01-14 23:00", 0}, {"2026-01-14 23:00", "2026-01-15 00:30", flex.NoLimit}, {"2026-01-15 00:30", "2026-01-15 07:00", 0}} {
					s.Steps = append(s.Steps, flex.Step{Span: flex.Span{From: clock(step.from), To: clock(step.to)}, Limit: step.limit})
				}
				return tx.AddSchedule(ctx, &c.Session, &s)
			})

			y.exec(t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
				SELECT org_id, event_id, 'schedule', 'schedule', asset_id, generation, 1000, $1, 1, 1100, 50, 200, '', '' FROM schedule`, tt.state)
			if tt.callback != "" {
				y.exec(t, `INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) SELECT org_id, event_id, asset_id, $1, 0, 0 FROM schedule`, tt.callback)
			}
			y.now = clock("2026-01-15 07:30")
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				c, err := tx.PlanningState(ctx, y.asset)
				if err != nil {
					return err
				}
				return tx.CloseSession(ctx, &c.Session)
			})

			if got := y.events(t); got != "" {
				t.Errorf("at once, when the plug may still flicker: %s", got)
			}
			y.now = clock("2026-01-15 07:31")
			if got := y.events(t); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			events, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
			if err != nil || len(events) > 0 && fmt.Sprint(events[0].Nominated) != "[3700 3700 3700]" {
				t.Errorf("nominated %v %v", events, err)
			}
		})
	}
}

// An asset that is taken away before its event is final leaves what was metered, by the meter
// that the event was settled on: nothing is taken back.
func TestSettleEvents_AssetGone(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		for _, own := range []bool{false, true} { // whether the asset's own meter is qualified
			y, monday, v := pausedMonday(t, freshLike(t, url, own))
			y.kwh(t, monday, v.Metered)
			if own {
				y.boundary(t, monday)
				y.exec(t, `INSERT INTO model (key, name, type, cop11) VALUES ('leaf', 'Leaf', 'electric_vehicle', TRUE)`)
				y.exec(t, `UPDATE asset SET installed_on = '2024-01-01'`)
			}

			y.now = monday.Period(36).End()
			if got := y.events(t); got != "2025-02-03 35-36 -1632 Wh est 408000" || y.history(t) != "flex event 20p" {
				t.Errorf("own meter %t: %s; %s", own, got, y.history(t))
			}
			y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, y.asset) })
			y.now = clock("2025-04-01 00:00")
			if got := y.events(t); got != "2025-02-03 35-36 -1632 Wh est 408000 final 408000" || y.history(t) != "flex event 20p" {
				t.Errorf("own meter %t, the asset gone: %s; %s", own, got, y.history(t))
			}
		}
	})
}

// freshLike returns the url, or that of another store of its engine.
func freshLike(t *testing.T, url string, other bool) string {
	switch {
	case !other:
		return url
	case strings.HasPrefix(url, "sqlite:"):
		return storetest.SQLite(t)
	}
	return storetest.Postgres(t)
}

// boundary has another asset of the site tell the boundary's register for three weeks: 1 kWh
// in the half-hours 35 and 36 of each day, and 0.3 kWh on the last.
func (y *fixture) boundary(t *testing.T, last flex.Day) flex.AssetID {
	t.Helper()
	other := flex.AssetID{2}
	y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES ($1, $2, $3, 'b', 'battery', 0)`, other.Bytes(), y.org.Bytes(), y.site.Bytes())
	var rs []flex.Reading
	var at flex.Micro

	for back := 20; back >= 0; back-- {
		d := last.Add(-back)
		for n := 34; n <= 36; n++ {
			instant := d.Period(n).End()
			rs = append(rs, flex.Reading{AssetID: other, Span: flex.Span{From: instant, To: instant}, Label: flex.BoundaryImportRegister, Value: at})
			if back == 0 {
				at += 300_000
			} else {
				at += 1_000_000
			}
		}
	}

	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
	return other
}

// A corrected reading settles the events again that it tells of, also when they are final: one
// of the site's boundary, whichever asset it came with, and a power that began before them.
func TestSettleEvents_CorrectedAtTheBoundary(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, _ := pausedMonday(t, url)
		other := y.boundary(t, monday)
		y.now = clock("2025-04-01 00:00")
		if got := y.events(t); got != "2025-02-03 35-36 -1400 Wh est 350000 final 350000" || y.history(t) != "flex event 18p" { // 17.5
			t.Errorf("at first: %s; %s", got, y.history(t))
		}

		end := monday.Period(36).End()
		y.now = y.now.Add(time.Hour)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			return tx.PutReadings(ctx, []flex.Reading{{AssetID: other, Span: flex.Span{From: end, To: end}, Label: flex.BoundaryImportRegister, Value: 60_500_000}})
		})
		if got := y.events(t); got != "2025-02-03 35-36 -1500 Wh est 375000 final 375000" || y.history(t) != "flex event 18p, flex period top-up 1p" { // 18.75
			t.Errorf("corrected: %s; %s", got, y.history(t))
		}

		for i, want := range []int{1, 1} { // a first reading after the final run counts as a correction does
			y.now = y.now.Add(time.Hour)
			var due []flex.FlexEventID
			y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
				long := flex.Span{From: monday.Period(33).Start(), To: monday.Period(40).End()}
				if err := tx.PutReadings(ctx, []flex.Reading{{AssetID: other, Span: long, Label: flex.BoundaryImportPower, Value: flex.Micro(i + 1)}}); err != nil {
					return err
				}
				due, err = tx.DueFlexEvents(ctx, 10)
				return err
			})

			if len(due) != want {
				t.Errorf("after %d corrections of a power over it, %d events are due", i, len(due))
			}
		}
	})
}

// The nominated method compares with the plan without the market, where there is no history,
// as far as the charge that came later shows that the car could have taken it.
func TestSettleEvents_Nominated(t *testing.T) {
	y, monday, v := pausedMonday(t, storetest.SQLite(t))
	y.set(t, "user_share=0.5", "baseline=nominated")
	y.kwh(t, monday, v.Metered)
	y.now = monday.Period(36).End()
	if got := y.events(t); got != "2025-02-03 35-36 est 1850000 missing 1" {
		t.Errorf("as long as it may be shown: %s", got)
	}
	y.kwh(t, monday, map[string]string{"40": "3.7", "41": "3.7"})
	y.now = monday.Add(3).Start()
	if got := y.events(t); got != "2025-02-03 35-36 -7190 Wh est 1797500" {
		t.Errorf("got %s", got)
	}
}

func TestSettleEvents_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday, v := pausedMonday(t, url)
		y.kwh(t, monday, v.Metered)
		y.now = monday.Period(36).End()
		errs := make(chan error, 6)
		for range cap(errs) {
			go func() {
				_, err := y.service.SettleEvents(context.Background())
				errs <- err
			}()
		}

		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := y.events(t); got != "2025-02-03 35-36 -1632 Wh est 408000" || y.history(t) != "flex event 20p" {
			t.Errorf("got %s; %s", got, y.history(t))
		}
	})
}

// An event that waits for the boundary's registers is settled when they come, though with
// another asset; a reading that is not enough does not have it settled over and over.
func TestSettleEvents_WaitsForTheBoundary(t *testing.T) {
	y, monday, _ := pausedMonday(t, storetest.SQLite(t))
	other := flex.AssetID{2}
	y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, created_at) VALUES ($1, $2, $3, 'b', 'battery', 0)`, other.Bytes(), y.org.Bytes(), y.site.Bytes())
	var at flex.Micro
	register := func(instant time.Time, more flex.Micro) flex.Reading {
		at += more
		return flex.Reading{AssetID: other, Span: flex.Span{From: instant, To: instant}, Label: flex.BoundaryImportRegister, Value: at}
	}

	var rs []flex.Reading
	for back := 20; back > 0; back-- {
		for n := 34; n <= 36; n++ {
			rs = append(rs, register(monday.Add(-back).Period(n).End(), 1_000_000))
		}
	}

	put := func(rs ...flex.Reading) {
		t.Helper()
		y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
	}

	put(rs...)
	y.now = monday.Period(36).End()
	if got := y.events(t); got != "2025-02-03 35-36 est 1850000 missing 2" {
		t.Errorf("without readings: %s", got)
	}
	put(register(monday.Period(34).End(), 1_000_000), register(monday.Period(35).End(), 300_000))
	if got := y.events(t); got != "2025-02-03 35-36 est 1850000 missing 1" {
		t.Errorf("half of it: %s", got)
	}

	// A power that does not cover the half-hour tells nothing of it.
	put(flex.Reading{AssetID: y.asset, Span: flex.Span{From: monday.Period(36).Start(), To: monday.Period(36).Start().Add(time.Minute)}, Label: flex.BoundaryImportPower, Value: 1e6})
	y.events(t)
	runs, err := y.service.Runs(t.Context(), y.org, 100)
	if err != nil {
		t.Fatal(err)
	}

	for range 5 {
		y.events(t)
	}
	if again, err := y.service.Runs(t.Context(), y.org, 100); err != nil || len(again) != len(runs) {
		t.Errorf("%d runs became %d, %v", len(runs), len(again), err)
	}
	put(register(monday.Period(36).End(), 300_000))
	y.now = y.now.Add(time.Hour)
	if got := y.events(t); got != "2025-02-03 35-36 -1400 Wh est 350000" {
		t.Errorf("with all: %s", got)
	}
}

// Part of the user's share may be paid early, and the rest when the settlement is final; an
// event that cost money takes from the user only if that is set.
func TestSettleEvents_Terms(t *testing.T) {
	for _, tt := range []struct {
		name     string
		set      string
		price    float64
		estimate string
		final    string
	}{
		{"paid early in part", "paid_early=0.8", 250, "flex event 16p", "flex event 16p, flex period top-up 4p"},
		{"half even", "rounding=half_even loss_factor=1.05", 250, "flex event 21p", "flex event 21p"},
		{"it cost money", "", -250, "flex event 0p", "flex event 0p"},
		{"it cost money, and the user pays", "claw_back=true", -250, "flex event -20p", "flex event -20p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y, monday, v := pausedMonday(t, storetest.SQLite(t))
			y.set(t, append(strings.Fields(tt.set), "user_share=0.5")...)
			y.now = y.now.Add(time.Minute)
			y.prices(t, monday.Span(), tt.price)

			y.kwh(t, monday, v.Metered)
			y.now = monday.Period(36).End()
			y.events(t)
			if got := y.history(t); got != tt.estimate {
				t.Errorf("at once: %s, want %s", got, tt.estimate)
			}
			y.now = clock("2025-04-01 00:00")
			y.events(t)
			if got := y.history(t); got != tt.final {
				t.Errorf("in the end: %s, want %s", got, tt.final)
			}
		})
	}
}
