package control

import (
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestReport_Short has ten batteries give 1,001 W each for 50 minutes: the report has each energy in whole watt-hours, and nothing is
// short by that in any half-hour or minute. What nine of them do not give is short.
func TestReport_Short(t *testing.T) {
	from := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	span := flex.Span{From: from, To: from.Add(50 * time.Minute)}

	for _, c := range []struct {
		change flex.Watts
		given  int
		short  [3]flex.WattHours // of two half-hours and of a minute
	}{
		{-10_010, 10, [3]flex.WattHours{}},
		{-10_010, 1, [3]flex.WattHours{4505, 3003, 150}},
		{10_010, 10, [3]flex.WattHours{}},
		{10_010, 1, [3]flex.WattHours{4505, 3003, 150}},
	} {
		in := flex.Instruction{Span: span, Change: c.change, Target: []int64{10_010 * 1800, 10_010 * 1200}}

		r := newReport(&in, from)
		r.Minutes = r.emptyMinutes(from, 60)
		for i := range 10 {
			called := store.Called{AssetID: flex.AssetID{byte(i)}, Power: 5000, Battery: true, CalledAt: from}
			called.Baseline = []flex.Step{{Span: span, Limit: 7}}
			called.Expected = called.Baseline
			if i < c.given {
				called.Expected = []flex.Step{{Span: span, Limit: 7 + c.change/10}}
			}

			r.add(&called, nil)
			r.addMinutesOf(&r.Assets[i], &called, func(flex.Span) (charge.Joules, bool) { return 0, false })
		}

		got := [3]flex.WattHours{r.Short(&r.Slots[0]), r.Short(&r.Slots[1]), r.Short(&r.Minutes[40])}
		if got != c.short || r.Short(&r.Slots[2]) != 0 || r.Short(&r.Minutes[55]) != 0 {
			t.Errorf("%d of %d W: %d Wh are short, not %d", c.given, c.change, got, c.short)
		}

		s := r.Minutes[40]
		if off := s.Asked - s.Expected + s.Baseline; c.given == 10 && off == 0 {
			t.Error("nothing is rounded")
		}
	}
}
