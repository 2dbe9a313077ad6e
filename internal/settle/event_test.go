package settle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/settle"
	_ "flexd/test/seed"
)

// at reads a clock time of the night from 14 to 15 January 2025; from 24:00 on it is the 15th.
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	var h, m int
	if _, err := fmt.Sscanf(clock, "%d:%d", &h, &m); err != nil {
		t.Fatal(err)
	}
	return time.Date(2025, 1, 14, h, m, 0, 0, time.UTC)
}

// steps reads "on 18:00-20:00, off 20:00-24:00".
func steps(t testing.TB, s string) (all []flex.Step) {
	t.Helper()
	for part := range strings.SplitSeq(s, ", ") {
		word, span, _ := strings.Cut(part, " ")
		from, to, _ := strings.Cut(span, "-")
		step := flex.Step{Span: flex.Span{From: at(t, from), To: at(t, to)}, Limit: flex.NoLimit}
		if word == "off" {
			step.Limit = 0
		}
		all = append(all, step)
	}
	return all
}

func TestDetect(t *testing.T) {
	type sent struct{ at, steps string }
	for _, tt := range []struct {
		name           string
		dispatched     []sent
		counterfactual string
		override       string
		want           []string
	}{
		{
			"as it would have been anyway",
			[]sent{{"18:00", "on 18:00-20:00, off 20:00-31:00"}}, "on 18:00-20:00, off 20:00-31:00", "", nil,
		},
		{
			"moved from the evening into the night, cut at midnight",
			[]sent{{"18:00", "off 18:00-23:00, on 23:00-25:00, off 25:00-31:00"}}, "on 18:00-20:00, off 20:00-31:00", "",
			[]string{"2025-01-14 37-40 down -14000", "2025-01-14 47-48 up 7000", "2025-01-15 1-2 up 7000"},
		},
		{
			"nothing was sent, whatever was meant", nil, "on 18:00-20:00, off 20:00-31:00", "", nil,
		},
		{
			"free until the first schedule arrives at nine",
			[]sent{{"21:00", "off 21:00-31:00"}}, "on 18:00-22:00, off 22:00-31:00", "",
			[]string{"2025-01-14 43-44 down -7000"},
		},
		{
			"a later schedule takes over in mid-period",
			[]sent{{"18:00", "off 18:00-31:00"}, {"19:15", "on 19:15-31:00"}}, "on 18:00-31:00", "",
			[]string{"2025-01-14 37-39 down -8750"},
		},
		{
			"the user's charge-now is no event",
			[]sent{{"18:00", "off 18:00-31:00"}}, "on 18:00-20:00, off 20:00-31:00", "18:30-19:30",
			[]string{"2025-01-14 37-37 down -3500", "2025-01-14 40-40 down -3500"},
		},
		{
			"a pause of one half-hour in the client's own schedule",
			[]sent{{"18:00", "on 22:00-25:00, off 25:00-25:30, on 25:30-30:00"}}, "on 22:00-30:00", "",
			[]string{"2025-01-15 3-3 down -3500"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := settle.Steering{
				Within: flex.Span{From: at(t, "18:00"), To: at(t, "31:00")},
				Power:  7000, Least: settle.LeastFlexed,
				Counterfactual: []settle.Dispatch{{At: at(t, "18:00"), Steps: steps(t, tt.counterfactual)}},
			}

			for _, d := range tt.dispatched {
				s.Dispatched = append(s.Dispatched, settle.Dispatch{At: at(t, d.at), Steps: steps(t, d.steps)})
			}
			if from, to, given := strings.Cut(tt.override, "-"); given {
				s.Overrides = []flex.Span{{From: at(t, from), To: at(t, to)}}
			}

			var got []string
			for _, e := range settle.Detect(s) {
				word := "up"
				if e.Down() {
					word = "down"
				}
				got = append(got, fmt.Sprintf("%s %d-%d %s %d", e.Day, e.First, e.Last, word, sum(e.Meant)))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// Events lie in the session, in order, apart, within one day each, and the energy that
// they moved is the difference of the two schedules but for what is below the threshold.
func TestDetect_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Date(2025, 10, 25, 15, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "offset")) * time.Second)
		s := settle.Steering{
			Within: flex.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "halves")) * 31 * time.Minute)},
			Power:  flex.Watts(rapid.IntRange(1000, 22000).Draw(t, "power")), Least: 1,
		}
		draw := func(name string) (all []flex.Step) {
			for f := s.Within.From; f.Before(s.Within.To); {
				to := f.Add(time.Duration(rapid.IntRange(60, 9000).Draw(t, name)) * time.Second)
				all = append(all, flex.Step{Span: flex.Span{From: f, To: to}, Limit: flex.NoLimit * flex.Watts(rapid.IntRange(0, 1).Draw(t, name))})
				f = to
			}
			return all
		}

		s.Dispatched = []settle.Dispatch{{At: from, Steps: draw("dispatched")}}
		would := draw("counterfactual")
		s.Counterfactual = []settle.Dispatch{{At: from, Steps: would}}
		var last settle.Event
		var meant flex.WattHours
		for i, e := range settle.Detect(s) {
			if e.First < 1 || e.Last < e.First || e.Last > e.Day.Periods() {
				t.Fatalf("event %+v is not within its day", e)
			}
			if e.Span().Meet(s.Within).Empty() {
				t.Fatalf("event %+v lies outside the session", e)
			}

			if i > 0 && e.Span().From.Before(last.Span().To) {
				t.Fatalf("event %+v overlaps %+v", e, last)
			}
			if len(e.Meant) != e.Last-e.First+1 || e.Down() != (sum(e.Meant) < 0) {
				t.Fatalf("event %+v", e)
			}
			last, meant = e, meant+sum(e.Meant)
		}
		exact := wattSeconds(s.Dispatched[0].Steps, s) - wattSeconds(would, s)
		if off := exact/3600 - int64(meant); off < -64 || off > 64 { // rounded in each period
			t.Fatalf("events moved %d Wh, the schedules differ by %d", meant, exact/3600)
		}
	})
}

func sum(all []flex.WattHours) (e flex.WattHours) {
	for _, each := range all {
		e += each
	}
	return e
}

func wattSeconds(steps []flex.Step, s settle.Steering) (total int64) {
	for _, step := range steps {
		total += int64(step.Meet(s.Within).Len()/time.Second) * int64(min(step.Limit, s.Power))
	}
	return total
}
