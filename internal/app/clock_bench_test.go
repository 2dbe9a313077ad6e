package app

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// BenchmarkAdvance advances clocks of organisations whose cars are plugged in every evening at
// six for 12 kWh by seven, and leave at eight. Only the advances are counted, not the events
// between them.
func BenchmarkAdvance(b *testing.B) {
	for _, c := range []struct{ orgs, cars, days int }{{1, 0, 365}, {1, 1, 12}, {1, 10, 12}, {1, 10, 365}, {100, 1, 12}} {
		b.Run(fmt.Sprintf("orgs=%d/cars=%d/days=%d", c.orgs, c.cars, c.days), func(b *testing.B) {
			storetest.EachBench(b, func(b *testing.B, url string) { benchAdvances(b, url, c.orgs, c.cars, c.days) })
		})
	}
}

func benchAdvances(b *testing.B, url string, orgs, cars, days int) {
	h, start := openBench(b, url)
	defer h.Close()

	used, n := time.Duration(0), 0
	for b.Loop() {
		b.StopTimer()
		n++
		fleets := benchOrgs(b, h, url, orgs, cars)
		for day := range max(1, days*min(cars, 1)) {
			evening := start.Add(time.Duration(day) * 24 * time.Hour)
			if cars == 0 {
				evening = start.Add(time.Duration(days) * 24 * time.Hour)
			}

			benchEvents(b, h, fleets.cars, control.Event{Kind: control.PlugIn, Intent: &flex.Intent{Need: 12000, ReadyBy: evening.Add(13 * time.Hour)}})
			used += benchAdvance(b, h, fleets.ids, evening.Add(14*time.Hour))
			benchEvents(b, h, fleets.cars, control.Event{Kind: control.PlugOut})
			used += benchAdvance(b, h, fleets.ids, evening.Add(24*time.Hour))
		}
		b.StartTimer()
	}

	b.ReportMetric(float64(used.Milliseconds())/float64(n), "cpu-ms/op")
}

// BenchmarkAdvance_Ratio advances the clocks of 100 organisations with a car each by nights
// and days of 12 days: half of them one after the other, each alone, and half at once, in
// turn, on one database. It reports what at once takes of the sum of each alone, in time and
// in processor time, which other work on the machine moves alike for both.
func BenchmarkAdvance_Ratio(b *testing.B) {
	storetest.EachBench(b, func(b *testing.B, url string) {
		const orgs, days = 200, 12 // 100 of either
		h, start := openBench(b, url)
		defer h.Close()

		all := benchOrgs(b, h, url, orgs, 1)
		half := [2][]flex.OrgID{all.ids[:orgs/2], all.ids[orgs/2:]}
		var took, used [2]time.Duration // alone, at once

		for b.Loop() {
			for day := range days {
				evening := start.Add(time.Duration(day) * 24 * time.Hour)
				for i, to := range []time.Time{evening.Add(14 * time.Hour), evening.Add(24 * time.Hour)} {
					ev := control.Event{Kind: control.PlugIn, Intent: &flex.Intent{Need: 12000, ReadyBy: evening.Add(13 * time.Hour)}}
					if i == 1 {
						ev = control.Event{Kind: control.PlugOut}
					}

					benchEvents(b, h, all.cars, ev)
					for j := range 2 { // which comes first alternates
						at := (day + i + j) % 2
						begun, before := time.Now(), processorTime()
						benchHalf(b, h, to, half[at], at == 1)
						took[at], used[at] = took[at]+time.Since(begun), used[at]+processorTime()-before
					}
				}
			}
		}

		b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "time-ratio")
		b.ReportMetric(used[1].Seconds()/used[0].Seconds(), "cpu-ratio")
		b.ReportMetric(used[0].Seconds(), "cpu-s-alone")
	})
}

// benchHalf advances the clocks of some organisations at once, or one after the other.
func benchHalf(b *testing.B, h *App, to time.Time, orgs []flex.OrgID, atOnce bool) {
	if atOnce {
		advanceAll(b, h, to, orgs...)
		return
	}

	for _, org := range orgs {
		advanceAll(b, h, to, org)
	}
}

// benchFleets are organisations and their cars.
type benchFleets struct {
	ids  []flex.OrgID
	cars map[flex.OrgID][]flex.AssetID
}

func benchOrgs(b *testing.B, h *App, url string, orgs, cars int) benchFleets {
	fleets := benchFleets{cars: map[flex.OrgID][]flex.AssetID{}}
	seed := storetest.NewSeed(b, h.DB, url)
	for range orgs {
		org, err := h.DB.AddOrg(b.Context(), fmt.Sprint("org ", len(fleets.ids), time.Now().UnixNano()))
		if err != nil {
			b.Fatal(err)
		}

		fleets.ids = append(fleets.ids, org.ID)
		for of := seed.As(org.ID); len(fleets.cars[org.ID]) < cars; {
			fleets.cars[org.ID] = append(fleets.cars[org.ID], of.Asset(of.Site(flex.FullScheduleMethod), flex.Charger, 7400))
		}
	}

	return fleets
}

// openBench opens flexd at a true clock that stands still, with prices for all advances.
func openBench(b *testing.B, url string) (*App, time.Time) {
	start := time.Date(2026, time.January, 15, 18, 0, 0, 0, time.UTC)
	h, err := Open(b.Context(), Settings{Database: url, Keys: storetest.Keys(b), Environment: flex.Sandbox, InventPrices: true, Now: func() time.Time { return start }})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Market.InventTo(b.Context(), start.Add(AdvanceMax)); err != nil { // as after another's advance
		b.Fatal(err)
	}

	return h, start
}

func benchEvents(b *testing.B, h *App, fleets map[flex.OrgID][]flex.AssetID, ev control.Event) {
	for org, cars := range fleets {
		for _, car := range cars {
			if err := h.Control.Event(b.Context(), org, car, ev); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// benchAdvance advances the clocks of all organisations at once, and returns the processor
// time that it took.
func benchAdvance(b *testing.B, h *App, orgs []flex.OrgID, to time.Time) time.Duration {
	b.StartTimer()
	defer b.StopTimer()

	before := processorTime()
	advanceAll(b, h, to, orgs...)

	return processorTime() - before
}

// processorTime is what the process has used, which other work on the machine moves less than
// the time of day.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
