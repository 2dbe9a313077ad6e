package reward_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// steered is a schedule that a car's client accepts when it is made, and when it reports it as
// failed and as executed; "" for never.
type steered struct {
	made, on, off    string // it charges from on until off
	failed, executed string
}

// steer has the car's session begin, if it has not, and makes it a schedule.
func (y *fixture) steer(t *testing.T, s steered) {
	t.Helper()
	y.now = clock(s.made)
	ready := clock("2026-01-15 07:00")
	made := store.Schedule{Cause: store.CauseInputs, From: store.PlanInputs{
		CountFrom: clock("2026-01-14 18:00"), ReadyBy: ready, Need: 11_100, Power: 7400, Mode: flex.Minimise,
	}}

	made.Steps = slices.DeleteFunc([]flex.Step{
		{Span: flex.Span{From: y.now, To: clock(s.on)}},
		{Span: flex.Span{From: clock(s.on), To: clock(s.off)}, Limit: flex.NoLimit},
		{Span: flex.Span{From: clock(s.off), To: ready}},
	}, func(s flex.Step) bool { return s.Empty() })

	y.addSchedule(t, &made)
	y.takeSchedule(t, &made)
	y.report(t, made.EventID, y.asset, flex.Failed, s.failed)
	y.report(t, made.EventID, y.asset, flex.Executed, s.executed)
}

// addSchedule keeps a schedule of the car's session, which begins if it has not.
func (y *fixture) addSchedule(t *testing.T, made *store.Schedule) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, y.asset)
		if err != nil {
			return err
		}

		if !c.Open() {
			made.Cause = store.CausePlugIn
			if err := tx.OpenSession(ctx, &c, 0); err != nil {
				return err
			}
		}
		return tx.AddSchedule(ctx, &c.Session, made)
	})
}

// takeSchedule has the client accept a schedule as it is made.
func (y *fixture) takeSchedule(t *testing.T, made *store.Schedule) {
	t.Helper()
	y.exec(t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		VALUES ($1, $2, 'schedule', 'schedule', $3, $4, $5, 'accepted', 1, $5, 0, 200, '', '')`,
		y.org.Bytes(), made.EventID.Bytes(), y.asset.Bytes(), made.Generation, made.MadeAt.UnixMicro())
}

// report adds a client's report of an event that comes at a time; none for "".
func (y *fixture) report(t *testing.T, event flex.EventID, asset flex.AssetID, status flex.CallbackStatus, at string) {
	t.Helper()
	if at == "" {
		return
	}

	y.exec(t, `INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, $4, $5, $5)`,
		y.org.Bytes(), event.Bytes(), asset.Bytes(), string(status), clock(at).UnixMicro())
}

// leave has the car's session end.
func (y *fixture) leave(t *testing.T, at string) {
	t.Helper()
	y.now = clock(at)
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, y.asset)
		if err != nil {
			return err
		}
		return tx.CloseSession(ctx, &c.Session)
	})
}

// A schedule that failed at the charger and was followed after all counts from when that was
// reported, and nothing of it before. A newer one that is followed stays in force.
func TestSettleEvents_FollowedLate(t *testing.T) {
	const night = "2026-01-14 47-48 est -370000 missing 2, 2026-01-15 1-1 est -185000 missing 1"

	waits := func(failed, executed string) steered {
		return steered{"2026-01-14 18:00", "2026-01-14 23:00", "2026-01-15 00:30", failed, executed}
	}
	charges := func(failed, executed string) steered {
		return steered{"2026-01-14 18:30", "2026-01-14 18:30", "2026-01-14 20:00", failed, executed}
	}

	for _, c := range []struct {
		name string
		sent []steered
		want string
	}{
		{"from the next half-hour on", []steered{waits("2026-01-14 18:05", "2026-01-14 18:30")}, "2026-01-14 38-39 est 740000 missing 2, " + night},
		{"from the middle of a half-hour on", []steered{waits("2026-01-14 18:05", "2026-01-14 18:45")}, "2026-01-14 38-39 est 555000 missing 2, " + night},
		{
			"when it was to charge", []steered{waits("2026-01-14 18:05", "2026-01-14 23:15")},
			"2026-01-14 47-48 est -277500 missing 2, 2026-01-15 1-1 est -185000 missing 1",
		},
		{"when the session was over", []steered{waits("2026-01-14 18:05", "2026-01-15 07:30")}, ""},
		{
			"reported after a newer one was followed", []steered{waits("2026-01-14 18:05", "2026-01-14 20:30"), charges("", "")},
			"2026-01-14 40-40 est -370000 missing 1",
		},
		{
			"the newer one, and the older one until then", []steered{waits("", ""), charges("2026-01-14 18:31", "2026-01-14 19:45")},
			"2026-01-14 37-39 est 1110000 missing 3, 2026-01-14 40-40 est -185000 missing 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.now = clock("2026-01-14 18:00")
				y.prices(t, flex.Span{From: y.now, To: clock("2026-01-14 21:00")}, 100)
				y.prices(t, flex.Span{From: clock("2026-01-14 21:00"), To: clock("2026-01-15 07:00")}, 50)
				for _, s := range c.sent {
					y.steer(t, s)
				}

				y.leave(t, "2026-01-15 07:30")
				y.now = clock("2026-01-15 07:31")
				if got := y.events(t); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// So does a dispatch, each battery's part by itself.
func TestSettleEvents_DispatchFollowedLate(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	for _, c := range []struct {
		name     string
		executed string
		other    bool    // another battery followed it
		kw       float64 // as the inverter measures it from 17:00 to 17:30
		want     string
	}{
		{"before it began", "2026-01-14 16:30", false, -3, "2026-01-14 35-35 -1500 Wh est 300000"},
		{"from its middle on", "2026-01-14 17:15", false, -1.5, "2026-01-14 35-35 -750 Wh est 150000"},
		{"when it was over", "2026-01-14 17:30", false, -3, ""},
		{"another battery of it", "2026-01-14 16:30", true, -3, ""},
		{"never", "", false, -3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.now = day.Period(33).Start() // 16:00
				id := y.battery(t, day)
				y.prices(t, day.Span(), 200)

				var d store.Dispatch
				y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
					d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: day.Period(35).Span(),
						Assets: []store.DispatchedAsset{{ID: id, Power: -3000, Without: []flex.Watts{0}}}})
					return err
				})

				y.accepted(t, d.ID, time.Second)
				y.report(t, d.ID, id, flex.Failed, "2026-01-14 16:05")
				by := id
				if c.other {
					by = flex.AssetID{8}
				}

				y.report(t, d.ID, by, flex.Executed, c.executed)
				y.now = day.Period(35).End().Add(time.Hour)
				y.inverter(t, id, day.Period(35), c.kw)
				if got := y.events(t); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A schedule behind a main fuse goes on after ready-by. What it says of that time steers
// nothing, so it is no event.
func TestSettleEvents_AfterTheNeed(t *testing.T) {
	for _, c := range []struct {
		name, on, off, want string
	}{
		{"charged at once", "2026-01-14 18:00", "2026-01-14 19:30", ""},
		{
			"charged later", "2026-01-14 20:00", "2026-01-14 21:30",
			"2026-01-14 37-39 est 1110000 missing 3, 2026-01-14 41-43 est -1110000 missing 3",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.now = clock("2026-01-14 18:00")
				y.prices(t, flex.Span{From: y.now, To: clock("2026-01-15 10:00")}, 100)
				y.steerOn(t, c.on, c.off)

				y.leave(t, "2026-01-15 09:00")
				y.now = clock("2026-01-15 09:01")
				if got := y.events(t); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// steerOn makes the car a schedule that charges from on until off, and that limits it to 4.6
// kW for a week after ready-by.
func (y *fixture) steerOn(t *testing.T, on, off string) {
	t.Helper()
	ready := clock("2026-01-15 07:00")
	made := store.Schedule{Cause: store.CausePlugIn, From: store.PlanInputs{
		CountFrom: y.now, ReadyBy: ready, Need: 11_100, Power: 7400, Mode: flex.Minimise,
	}}

	made.Steps = slices.DeleteFunc([]flex.Step{
		{Span: flex.Span{From: y.now, To: clock(on)}},
		{Span: flex.Span{From: clock(on), To: clock(off)}, Limit: 7400},
		{Span: flex.Span{From: clock(off), To: ready}},
		{Span: flex.Span{From: ready, To: ready.Add(7 * 24 * time.Hour)}, Limit: 4600},
	}, func(s flex.Step) bool { return s.Empty() })

	y.addSchedule(t, &made)
	y.takeSchedule(t, &made)
}

// A car that is plugged in for longer than deliveries stay has the events of its first night:
// what became of its schedules stays until its events were looked for, and no longer.
func TestSettleEvents_PluggedInForLong(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.now = clock("2026-01-14 18:00")
		y.prices(t, flex.Span{From: y.now, To: clock("2026-01-14 21:00")}, 100)
		y.prices(t, flex.Span{From: clock("2026-01-14 21:00"), To: clock("2026-01-15 07:00")}, 50)
		y.steer(t, steered{"2026-01-14 18:00", "2026-01-14 23:00", "2026-01-15 00:30", "2026-01-14 18:05", "2026-01-14 18:30"})

		drop := func() (n int64) {
			y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
				n, err = tx.DropDeliveries(ctx, y.now)
				return err
			})
			return n
		}

		y.now = clock("2026-01-24 12:00")
		if n := drop(); n != 0 {
			t.Errorf("%d were dropped while the car was plugged in", n)
		}

		y.leave(t, "2026-01-24 18:00")
		if n := drop(); n != 0 {
			t.Errorf("%d were dropped before its events were looked for", n)
		}

		y.now = clock("2026-01-24 18:01")
		want := "2026-01-14 38-39 est 740000 missing 2, 2026-01-14 47-48 est -370000 missing 2, 2026-01-15 1-1 est -185000 missing 1"
		if got := y.events(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := drop(); n == 0 {
			t.Error("nothing was dropped afterwards")
		}
	})
}

// What a car gave is noted for settlement: by what it followed, and until it followed
// something newer, whatever was made meanwhile.
func TestCloseSession_Given(t *testing.T) {
	type sent struct {
		made             string
		gives, taken     bool // 5 kW from 18:00 to 20:00
		failed, executed string
	}

	for _, c := range []struct {
		name string
		sent []sent
		want flex.WattHours
	}{
		{"refused in between", []sent{{made: "18:00", gives: true, taken: true}, {made: "19:00"}, {made: "19:30", taken: true}}, 7500},
		{"replaced", []sent{{made: "18:00", gives: true, taken: true}, {made: "19:00", taken: true}}, 5000},
		{"followed late", []sent{{made: "18:00", gives: true, taken: true, failed: "18:05", executed: "19:15"}}, 3750},
		{"never accepted, and replaced", []sent{{made: "18:00", gives: true}, {made: "19:30", taken: true}}, 0},
		{"never accepted", []sent{{made: "18:00", gives: true}}, 10_000},
		{"never accepted, and planned again", []sent{{made: "18:00", gives: true}, {made: "19:30"}}, 7500},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				from, ready := clock("2026-01-14 18:00"), clock("2026-01-15 07:00")
				evening := flex.Step{Span: flex.Span{From: from, To: clock("2026-01-14 20:00")}, Limit: 5000}
				var made store.Schedule

				for _, s := range c.sent {
					y.now = clock("2026-01-14 " + s.made)
					made = store.Schedule{Cause: store.CauseInputs, From: store.PlanInputs{
						CountFrom: from, ReadyBy: ready, Power: 7400, Mode: flex.Minimise, Discharge: &store.Discharge{Power: 5000, Capacity: 40_000},
					}}
					made.Steps = []flex.Step{{Span: flex.Span{From: y.now, To: ready}}}
					if s.gives {
						made.From.Discharge.Discharges = []flex.Step{evening}
					}

					y.addSchedule(t, &made)
					if s.taken {
						y.takeSchedule(t, &made)
					}
					for status, at := range map[flex.CallbackStatus]string{flex.Failed: s.failed, flex.Executed: s.executed} {
						if at != "" {
							y.report(t, made.EventID, y.asset, status, "2026-01-14 "+at)
						}
					}
				}

				y.leave(t, "2026-01-14 21:00")
				y.write(t, func(ctx context.Context, tx *store.Tx) error {
					r, err := tx.SessionSettlement(ctx, made.SessionID)
					if err == nil && r.Given != c.want {
						t.Errorf("%d Wh are noted, want %d", r.Given, c.want)
					}
					return err
				})
			})
		})
	}
}
