package app

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// BenchmarkAdvance turns clocks of organisations whose cars are plugged in every evening at six for 12 kWh by
// seven, and leave at eight. Only the turns are counted, not the events between them.
func BenchmarkAdvance(b *testing.B) {
	for _, c := range []struct{ orgs, cars, days int }{{1, 0, 365}, {1, 1, 12}, {1, 10, 12}, {1, 10, 365}, {100, 1, 12}} {
		b.Run(fmt.Sprintf("orgs=%d/cars=%d/days=%d", c.orgs, c.cars, c.days), func(b *testing.B) {
			storetest.EachBench(b, func(b *testing.B, url string) { benchTurns(b, url, c.orgs, c.cars, c.days) })
		})
	}
}

func benchTurns(b *testing.B, url string, orgs, cars, days int) {
	start := time.Date(2026, time.January, 15, 18, 0, 0, 0, time.UTC)
	h, err := Open(b.Context(), Settings{Database: url, Keys: storetest.Keys(b), Environment: flex.Sandbox, InventPrices: true, Now: func() time.Time { return start }})
	if err != nil {
		b.Fatal(err)
	}

	defer h.Close()
	if err := h.Market.InventTo(b.Context(), start.Add(AdvanceMax)); err != nil { // as after another's turn
		b.Fatal(err)
	}

	seed := storetest.NewSeed(b, h.DB, url)
	used, n := time.Duration(0), 0
	for b.Loop() {
		b.StopTimer()
		n++
		fleets := map[flex.OrgID][]flex.AssetID{}
		for range orgs {
			org, err := h.DB.AddOrg(b.Context(), fmt.Sprint("org ", len(fleets), time.Now().UnixNano()))
			if err != nil {
				b.Fatal(err)
			}

			fleets[org.ID] = nil
			for of := seed.As(org.ID); len(fleets[org.ID]) < cars; {
				fleets[org.ID] = append(fleets[org.ID], of.Asset(of.Site(flex.FullScheduleMethod), flex.Charger, 7400))
			}
		}

		for day := range max(1, days*min(cars, 1)) {
			evening := start.Add(time.Duration(day) * 24 * time.Hour)
			if cars == 0 {
				evening = start.Add(time.Duration(days) * 24 * time.Hour)
			}

			benchEvents(b, h, fleets, control.Event{Kind: control.PlugIn, Intent: &flex.Intent{Need: 12000, ReadyBy: evening.Add(13 * time.Hour)}})
			used += benchTurn(b, h, fleets, evening.Add(14*time.Hour))
			benchEvents(b, h, fleets, control.Event{Kind: control.PlugOut})
			used += benchTurn(b, h, fleets, evening.Add(24*time.Hour))
		}
		b.StartTimer()
	}

	b.ReportMetric(float64(used.Milliseconds())/float64(n), "cpu-ms/op")
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

// benchTurn turns the clocks of all organisations at once, and returns the processor time that it took.
func benchTurn(b *testing.B, h *App, fleets map[flex.OrgID][]flex.AssetID, to time.Time) time.Duration {
	b.StartTimer()
	defer b.StopTimer()

	before := processorTime()
	turnAll(b, h, to, slices.Collect(maps.Keys(fleets))...)

	return processorTime() - before
}

// processorTime is what the process has used, which other work on the machine moves less than the time of day.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
