package market

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestDayView has one source say 50 ahead of a day and another 80 after its first hours: those
// half-hours have a forecast and an outturn, the others a forecast alone.
func TestDayView(t *testing.T) {
	each(t, "2026-04-13T13:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		day := span("2026-04-13T23:00:00Z", "2026-04-14T23:00:00Z")
		publishFlat(t, d, "ahead", day, 50)
		c.set("2026-04-14T01:00:00Z")
		publishFlat(t, d, "after", span("2026-04-13T23:00:00Z", "2026-04-14T00:30:00Z"), 80)

		v, err := d.DayView(t.Context(), DayQuery{Day: flex.Day{Year: 2026, Month: 4, Dom: 14}, Source: "ahead"})
		if err != nil || v.Org != seed.Org || len(v.Lines) != 48 || v.Missing != 0 || len(v.Versions) != 1 || v.Outturn != nil {
			t.Errorf("of one source: %d lines, %d missing, %d versions, outturn %v, %v", len(v.Lines), v.Missing, len(v.Versions), v.Outturn, err)
		}

		v, err = d.DayView(t.Context(), DayQuery{})
		if err != nil || v.Day != (flex.Day{Year: 2026, Month: 4, Dom: 14}) || v.Outturn == nil {
			t.Fatalf("day %v, outturn %v, %v", v.Day, v.Outturn, err)
		}
		if o := *v.Outturn; o.Count != 3 || o.Mean != 30 || o.Bias != 30 || o.Worst != 30 || o.Forecast != "ahead" || o.Now != "after" {
			t.Errorf("outturn %+v, want three half-hours that are 30 dearer", o)
		}
	})
}

// TestDayView_ManyPublications has a source publish each half-hour what it knows of the day,
// as the system price is: the forecast of the day before is still compared, though it is not
// among the newest publications, which are listed.
func TestDayView_ManyPublications(t *testing.T) {
	each(t, "2026-04-13T13:00:00Z", func(t *testing.T, d *Service, c *clock, _ *storetest.Seed) {
		day := span("2026-04-13T23:00:00Z", "2026-04-14T23:00:00Z")
		publishFlat(t, d, "ahead", day, 50)

		const over = versionsMax + 8
		for i := range over {
			now := day.From.Add(time.Duration(i+1) * flex.HalfHour)
			c.set(now.Format(time.RFC3339))
			publishFlat(t, d, "after", flex.Span{From: day.From, To: now}, 80)
		}

		v, err := d.DayView(t.Context(), DayQuery{})
		if err != nil || v.Outturn == nil {
			t.Fatalf("outturn %v, %v", v.Outturn, err)
		}

		if o := *v.Outturn; o.Count != over || o.Mean != 30 || o.Forecast != "ahead" || o.Now != "after" {
			t.Errorf("outturn %+v, want %d half-hours that are 30 dearer", o, over)
		}
		if v.NumVersions != over+1 || len(v.Versions) != versionsMax || v.Versions[0].Source != "after" {
			t.Errorf("%d publications, %d listed", v.NumVersions, len(v.Versions))
		}
		if n := len(v.Versions[0].Prices); n != 48 || v.Versions[0].Prices[over] != nil || *v.Versions[0].Prices[0] != 80 {
			t.Errorf("the newest has %d prices: %v", n, v.Versions[0].Prices)
		}
	})
}
