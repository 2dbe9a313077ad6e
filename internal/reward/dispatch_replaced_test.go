package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// order is a dispatch of the test's battery, by minutes of the evening from 17:00 on.
type order struct {
	issued, from, to int
	power, without   flex.Watts
	refused          bool
}

// Several dispatches of one battery meet in half-hours. Each half-hour is in one event, of
// what the newest accepted dispatch of each minute asked for.
func TestSettleEvents_DispatchReplaced(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	for _, c := range []struct {
		name   string
		orders []order
		kw     []float64 // as the inverter measures it from 17:00 on
		want   string    // events, with what each half-hour was to move
		pence  flex.Pence
	}{
		{
			"another takes the rest in a half-hour",
			[]order{{-30, 0, 120, -3000, 0, false}, {65, 70, 180, -1000, 0, false}},
			[]float64{-3, -3, -1.666, -1, -1, -1},
			"35-38 -1500,-1500,-833,-500 39-40 -500,-500", 107,
		},
		{
			"another goes on where one ended",
			[]order{{-30, 0, 40, -3000, 0, false}, {35, 40, 120, -1000, 0, false}},
			[]float64{-3, -1.667, -1, -1},
			"35-36 -1500,-833 37-38 -500,-500", 67,
		},
		{
			"another is sent in the half-hour in which one ended",
			[]order{{-30, 0, 10, -3000, 0, false}, {15, 15, 90, -3000, 0, false}},
			[]float64{-2.5, -3, -3},
			"35-35 -1250 36-37 -1500,-1500", 85,
		},
		{
			"taken back for one half-hour",
			[]order{{-30, 0, 90, -3000, 0, false}, {25, 30, 60, 0, 0, false}},
			[]float64{-3, -1, -3},
			"35-35 -1500 37-37 -1500", 60,
		},
		{
			"taken back for the rest of a half-hour",
			[]order{{-30, 0, 90, -3000, 0, false}, {40, 40, 60, 0, 0, false}},
			[]float64{-3, -1, -3},
			"35-35 -1500 36-36 -500 37-37 -1500", 70,
		},
		{
			"what would have charged is taken back",
			[]order{{-30, 0, 90, -3000, 2000, false}, {25, 30, 60, 0, 2000, false}},
			[]float64{-3, 0, -3},
			"35-35 -2500 36-36 -1000 37-37 -2500", 60,
		},
		{
			"asked to do the opposite before it began",
			[]order{{-30, 0, 60, -3000, 0, false}, {-20, 0, 60, 2000, 0, false}},
			[]float64{2, 2},
			"35-36 1000,1000", -40,
		},
		{
			"the newer was refused",
			[]order{{-30, 0, 60, -3000, 0, false}, {-20, 0, 60, 2000, 0, true}},
			[]float64{-3, -3},
			"35-36 -1500,-1500", 60,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				y := open(t, url)

				y.set(t, "user_share=1", "claw_back=true", "certainty=0")
				begins := day.Period(35).Start()
				y.now = begins.Add(-time.Hour)
				id := y.battery(t, day)
				for back := 1; back <= 20; back++ {
					for n := range 8 {
						y.inverter(t, id, day.Add(-back).Period(35+n), 0)
					}
				}
				y.prices(t, day.Span(), 200)
				minute := func(m int) time.Time { return begins.Add(time.Duration(m) * time.Minute) }

				for _, o := range c.orders {
					y.now = minute(o.issued)
					y.events(t)
					var d store.Dispatch
					y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
						without := []flex.Watts{o.without, o.without, o.without, o.without, o.without}
						d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: flex.Span{From: minute(o.from), To: minute(o.to)},
							Assets: []store.DispatchedAsset{{ID: id, Power: o.power, Without: without}}})
						return err
					})

					y.accepted(t, d.ID, 0)
					if o.refused {
						y.write(t, func(ctx context.Context, tx *store.Tx) error {
							return tx.AddCallback(ctx, flex.Callback{EventID: d.ID, AssetID: id, Status: flex.Rejected})
						})
					}
				}

				for n, kw := range c.kw {
					y.inverter(t, id, day.Period(35+n), kw)
				}
				for _, o := range c.orders { // each is found as soon as it may be
					if at := minute(o.to); at.After(y.now) {
						y.now = at.Add(time.Minute)
						y.events(t)
					}
				}
				y.now = begins.Add(6 * time.Hour)
				y.events(t)

				found, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, e := range found {
					got = append(got, fmt.Sprintf("%d-%d %s", e.First, e.Last, strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Meant), " ", ","), "[]")))
				}

				info, err := y.service.Info(t.Context(), y.org, y.site)
				if said := strings.Join(got, " "); err != nil || said != c.want || info.Balance != c.pence {
					t.Errorf("%s: %d p, %v; want %s: %d p", said, info.Balance, err, c.want, c.pence)
				}
			})
		})
	}
}

// A charger that an instruction called for an hour is dispatched in one of the half-hours, and
// found dispatched first. The half-hour is the dispatch's; the others stay the instruction's.
func TestInstruction_BesideADispatch(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := newTwoChargers(t, url)
		var d store.Dispatch
		s.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: s.monday.Period(37).Span(),
				Assets: []store.DispatchedAsset{{ID: s.cars[1], Power: 3600, Without: []flex.Watts{0}}}})
			return err
		})

		s.accepted(t, d.ID, time.Second)
		s.waits(300)
		s.exec(t, `UPDATE reckoning SET detect_at = detect_at + 3600000000`)
		s.events(t)
		s.now = s.now.Add(time.Hour)
		s.used(0, 7.8, 0.4, 5.333, 7.8, 7.8, 7.8, 7.8, 2.867)
		s.events(t)

		found, _, err := s.service.FlexEvents(t.Context(), s.org, s.site)
		if err != nil {
			t.Fatal(err)
		}
		var of []string
		moved := flex.WattHours(0)

		for _, e := range found {
			if e.AssetID == s.cars[1] {
				of = append(of, fmt.Sprintf("%d-%d", e.First, e.Last))
			}
			if e.Flex != nil {
				moved += *e.Flex
			}
		}
		if got := strings.Join(of, " "); got != "36-36 37-37 41-42" || moved != 0 {
			t.Errorf("events %s that moved %d Wh in all, want 36-36 37-37 41-42 and 0", got, moved)
		}
	})
}
