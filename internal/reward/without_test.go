package reward_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two cars behind a main fuse of 9.2 kW charge 14 kWh each from 23:30, and were asked to do so
// from 02:00, one after the other. Without the market they would have had 4.6 kWh of the first
// half-hour together, whichever of them is looked at first. (Plans are in whole minutes.)
func TestSettleEvents_FuseBoundsBothPlans(t *testing.T) {
	first, second := flex.AssetID{1}, flex.AssetID{2}
	const want = "the first: 2026-01-14 48-48 -3700 of 3700, 2026-01-15 1-3 -10360 of 10360, 2026-01-15 5-8 14000 of 0; " +
		"the second: 2026-01-14 48-48 -900 of 900, 2026-01-15 1-6 -13126 of 13126, 2026-01-15 9-12 14000 of 0"

	for name, c := range map[string]struct {
		leaves []flex.AssetID
		fuse   flex.Watts
		want   string
	}{
		"the first is looked at first":  {[]flex.AssetID{first, second}, 9200, want},
		"the second is looked at first": {[]flex.AssetID{second, first}, 9200, want},
		"a fuse for both": {
			[]flex.AssetID{first, second}, 14_800,
			"the first: 2026-01-14 48-48 -3700 of 3700, 2026-01-15 1-3 -10360 of 10360, 2026-01-15 5-8 14000 of 0; " +
				"the second: 2026-01-14 48-48 -3700 of 3700, 2026-01-15 1-3 -10360 of 10360, 2026-01-15 9-12 14000 of 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.supply(t, c.fuse)
				y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, model, created_at) VALUES ($1, $2, $3, 'b', 'electric_vehicle', 'Leaf', 0)`,
					second.Bytes(), y.org.Bytes(), y.site.Bytes())
				y.exec(t, `UPDATE asset SET power_w = 7400`)

				y.asset = first
				y.now = clock("2026-01-14 18:00")
				y.wait(t, "2026-01-15 02:00", "2026-01-15 04:00")
				y.asset = second
				y.now = clock("2026-01-14 18:30")
				y.wait(t, "2026-01-15 04:00", "2026-01-15 06:00")

				for i, id := range c.leaves {
					y.asset = id
					y.leave(t, fmt.Sprintf("2026-01-15 0%d:00", 7+i))
					y.now = y.now.Add(time.Minute)
					y.events(t)
				}

				got := "the first: " + y.meant(t, first) + "; the second: " + y.meant(t, second)
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// wait makes the car a schedule for 14 kWh in off-peak time that has it charge from on until off.
func (y *fixture) wait(t *testing.T, on, off string) {
	t.Helper()
	ready := clock("2026-01-15 07:00")
	made := store.Schedule{Cause: store.CausePlugIn, From: store.PlanInputs{
		CountFrom: y.now, ReadyBy: ready, Need: 14_000, Power: 7400, Mode: flex.Minimise,
		Tariff: flex.Tariff{OffPeak: "23:30-07:00", Zone: "Europe/London", Type: flex.DualRate},
	}}

	made.Steps = []flex.Step{
		{Span: flex.Span{From: y.now, To: clock(on)}},
		{Span: flex.Span{From: clock(on), To: clock(off)}, Limit: 7000},
		{Span: flex.Span{From: clock(off), To: ready}},
	}

	y.addSchedule(t, &made)
	y.takeSchedule(t, &made)
}

// meant says of each event of an asset what it was to move, and how much it would have drawn
// without the market.
func (y *fixture) meant(t *testing.T, asset flex.AssetID) string {
	t.Helper()
	events, _, err := y.service.FlexEvents(t.Context(), y.org, y.site)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for i := range events {
		e := &events[i]
		if e.AssetID != asset {
			continue
		}

		var meant, would flex.WattHours
		for n := range e.Meant {
			meant += e.Meant[n]
			would += e.Nominated[n]
		}
		all = append(all, fmt.Sprintf("%s %d-%d %d of %d", e.Day, e.First, e.Last, meant, would))
	}

	return strings.Join(all, ", ")
}
