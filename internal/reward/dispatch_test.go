package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// battery adds a battery of 3 kW to the fixture's site, which was idle on the days before.
func (y *fixture) battery(t *testing.T, day flex.Day) flex.AssetID {
	t.Helper()
	id := flex.AssetID{7}
	y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, model, power_w, created_at) VALUES ($1, $2, $3, 'b', 'battery', 'Box', 3000, 0)`,
		id.Bytes(), y.org.Bytes(), y.site.Bytes())
	for back := 1; back <= 20; back++ {
		y.inverter(t, id, day.Add(-back).Period(35), 0)
	}
	return id
}

// inverter reads a battery's power in a half-hour.
func (y *fixture) inverter(t *testing.T, id flex.AssetID, p flex.Period, kw float64) {
	t.Helper()
	r := flex.Reading{AssetID: id, Span: p.Span(), Label: flex.BatteryInverterPower, Value: flex.Micro(kw * 1e6)}
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, []flex.Reading{r}) })
}

// accepted notes that the client took a dispatch over so long after it was issued.
func (y *fixture) accepted(t *testing.T, event flex.EventID, after time.Duration) {
	t.Helper()
	y.exec(t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
		VALUES ($1, $2, 'dispatch', 'dispatch', 1, $3, 'accepted', 1, $4, 0, 200, '', '')`,
		y.org.Bytes(), event.Bytes(), y.now.UnixMicro(), y.now.Add(after).UnixMicro())
}

// A battery that is dispatched has a flex event, if its client took the dispatch over, did
// not report it as refused or failed, and the market was the reason for it.
func TestSettleEvents_Dispatch(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	for _, c := range []struct {
		name     string
		without  []flex.Watts
		accepted bool
		after    time.Duration

		reported flex.CallbackStatus
		kw       float64 // as the inverter measures it
		want     string
		balance  flex.Pence
	}{
		{"delivered", []flex.Watts{0}, true, time.Second, flex.Executed, -3, "2026-01-14 35-35 -1500 Wh est 300000", 15},
		{"half delivered", []flex.Watts{0}, true, time.Second, flex.Accepted, -1.5, "2026-01-14 35-35 -750 Wh est 150000", 8},
		{"taken over and not done", []flex.Watts{0}, true, time.Second, flex.Accepted, 0, "2026-01-14 35-35 0 Wh est 0", 0},
		{"never taken over", []flex.Watts{0}, false, 0, "", -3, "", 0},
		{"reported as rejected", []flex.Watts{0}, true, time.Second, flex.Rejected, -3, "", 0},
		{"reported as failed", []flex.Watts{0}, true, time.Second, flex.Failed, -3, "", 0},
		{"taken over when it was over", []flex.Watts{0}, true, 2 * time.Hour, "", -3, "", 0},
		{"the tariff alone would have had it do so", []flex.Watts{-3000}, true, time.Second, "", -3, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.set(t, "user_share=0.5")
				y.now = day.Period(33).Start() // 16:00
				id := y.battery(t, day)
				y.prices(t, day.Span(), 200)
				var d store.Dispatch
				y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
					d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: day.Period(35).Span(),
						Assets: []store.DispatchedAsset{{ID: id, Power: -3000, Without: c.without}}})
					return err
				})

				if c.accepted {
					y.accepted(t, d.ID, c.after)
				}
				if c.reported != "" {
					y.write(t, func(ctx context.Context, tx *store.Tx) error {
						return tx.AddCallback(ctx, flex.Callback{EventID: d.ID, AssetID: id, Status: c.reported})
					})
				}
				y.now = day.Period(35).End()
				if got := y.events(t); got != "" {
					t.Errorf("an event before its end is a minute past: %s", got)
				}

				y.now = day.Period(35).End().Add(time.Hour)
				y.inverter(t, id, day.Period(35), c.kw)
				if got := y.events(t); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if info, err := y.service.Info(t.Context(), y.org, y.site); err != nil || info.Balance != c.balance {
					t.Errorf("a balance of %d p, %v; want %d p", info.Balance, err, c.balance)
				}
			})
		})
	}
}

// A dispatch that another one takes the place of has an event only for the time in which it held.
func TestSettleEvents_DispatchTakenOver(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	slot := day.Period(35).Span()

	for _, c := range []struct {
		name     string
		power    flex.Watts // of the newer
		from     time.Duration
		accepted bool
		kw       float64
		want     string
	}{
		{"taken back whole", 0, 0, true, 0, ""},
		{"not accepted", 0, 0, false, -3, "2026-01-14 35-35 -1500 Wh est 300000"},
		{"taken back from its middle on", 0, 15 * time.Minute, true, -1.5, "2026-01-14 35-35 -750 Wh est 150000"},
		{"by one that asks for the opposite", 3000, 0, true, 3, "2026-01-14 35-35 1500 Wh est -300000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.now = day.Period(33).Start()
				id := y.battery(t, day)
				y.prices(t, day.Span(), 200)

				send := func(from time.Duration, power flex.Watts, accepted bool) {
					var d store.Dispatch
					y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
						d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: flex.Span{From: slot.From.Add(from), To: slot.To},
							Assets: []store.DispatchedAsset{{ID: id, Power: power, Without: []flex.Watts{0}}}})
						return err
					})
					if accepted {
						y.accepted(t, d.ID, time.Second)
					}
					y.now = y.now.Add(time.Minute)
				}

				send(0, -3000, true)
				send(c.from, c.power, c.accepted)
				y.now = slot.To.Add(time.Hour)
				y.inverter(t, id, day.Period(35), c.kw)
				if got := y.events(t); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A dispatch that says nothing of it takes what the battery would have done from its plan.
func TestAddDispatch_TakesThePlan(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
		y := open(t, url)
		y.now = day.Period(33).Start()
		id := y.battery(t, day)

		var due []store.EndedDispatch
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			at := flex.PeriodAt(y.now)
			err := tx.PutBatteryPlan(ctx, id, store.BatteryPlan{From: at, StoredAt: at, ForecastFrom: at, ChangedAt: y.now, Without: []flex.Watts{100, -200, 300}})
			if err != nil {
				return err
			}
			_, err = tx.AddDispatch(ctx, store.Dispatch{Market: "dno", Span: flex.Span{From: at.Add(1).Start(), To: at.Add(4).Start()},
				Assets: []store.DispatchedAsset{{ID: id, Power: 1000}}})
			return err
		})

		y.now = y.now.Add(6 * time.Hour)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			parts, err := tx.DueDispatches(ctx, 10)
			if err == nil {
				due, err = tx.EndedDispatches(ctx, parts)
			}

			return err
		})
		if len(due) != 1 || len(due[0].Without) != 3 || due[0].Without[0] != -200 || due[0].Without[1] != 300 || due[0].Without[2] != 0 {
			t.Errorf("due: %+v", due)
		}
	})
}
