package settle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// netted makes a day of a month of 2026 from its sum and standard error, both in pence.
func netted(
	month, dom int,
	sum, err int64,
) settle.DayNetted {
	return settle.DayNetted{
		Day: flex.Day{Year: 2026 + (month-1)/12, Month: time.Month((month-1)%12 + 1), Dom: dom}, Certainty: settle.Certainty{Errors: 2 * settle.Whole, Months: 2},
		Share: flex.Pence(sum), Early: flex.Pence(sum), Error: settle.MilliPence(err * 1000),
	}
}

// A month's sum is credited once it is beyond its error, and carried until then, or lapses.
func TestNetMonths(t *testing.T) {
	free := func(d settle.DayNetted) settle.DayNetted {
		d.Certainty = settle.Certainty{}
		return d
	}

	for _, tt := range []struct {
		name  string
		days  []settle.DayNetted
		until int
		want  string // by month: carried in, lapsed, sum, error, credited, carried out, floored
	}{
		{"beyond its error", []settle.DayNetted{netted(1, 1, 7, 3)}, 1, "0 0 7 3.000 7 0 0"},
		{"just not", []settle.DayNetted{netted(1, 1, 6, 3)}, 1, "0 0 6 3.000 0 6 0"},
		{"days err apart", []settle.DayNetted{netted(1, 1, 4, 3), netted(1, 2, 7, 4)}, 1, "0 0 11 5.000 11 0 0"},
		{"carried, and then beyond", []settle.DayNetted{netted(1, 1, 6, 3), netted(2, 1, 5, 4)}, 2, "0 0 6 3.000 0 6 0; 6 0 11 5.000 11 0 0"},
		{"what costs is carried", []settle.DayNetted{netted(1, 1, -6, 3), netted(2, 1, 18, 4)}, 2, "0 0 -6 3.000 0 -6 0; -6 0 12 5.000 12 0 0"},
		{
			"lapses after two months", []settle.DayNetted{netted(1, 1, 6, 3), netted(3, 1, 2, 4), netted(4, 1, 4, 3)}, 4,
			"0 0 6 3.000 0 6 0; 6 0 8 5.000 0 8 0; 8 6 6 5.000 0 6 0",
		},
		{"lapses without an event", []settle.DayNetted{netted(1, 1, 6, 3)}, 4, "0 0 6 3.000 0 6 0; 6 6 0 0.000 0 0 0"},
		{"not before it is over", []settle.DayNetted{netted(1, 1, 6, 3)}, 3, "0 0 6 3.000 0 6 0"},
		{"without certainty", []settle.DayNetted{free(netted(1, 1, 6, 9)), free(netted(2, 1, -6, 9)), free(netted(3, 1, 1, 9))}, 9, "0 0 6 0.000 6 0 0; 0 0 -6 0.000 0 0 6; 0 0 1 0.000 1 0 0"},
		{"given up", []settle.DayNetted{netted(1, 1, 6, 3), free(netted(2, 1, 1, 4))}, 9, "0 0 6 3.000 0 6 0; 6 0 7 0.000 7 0 0"},
		{"no baseline errs", []settle.DayNetted{netted(1, 1, 1, 0), netted(2, 1, -1, 0), netted(3, 1, 2, 0)}, 3, "0 0 1 0.000 1 0 0; 0 0 -1 0.000 0 -1 0; -1 0 1 0.000 1 0 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, m := range settle.NetMonths(tt.days, netted(tt.until, 28, 0, 0).Day) {
				err, _ := strings.CutSuffix(m.Error.String(), " p")
				got = append(got, fmt.Sprintf("%d %d %d %s %d %d %d", m.CarriedIn, m.Lapsed, m.Sum(), err, m.Credited, m.CarriedOut, m.Dropped))
			}

			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

// Through random years: what was delivered is credited, carried, lapsed or floored, and nothing
// else; each month carries in what the one before it carried out.
func TestNetMonths_AddUp(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 11))
	for range 2000 {
		var days []settle.DayNetted
		var delivered, credited, lapsed, floored, carried flex.Pence

		for month := 1; month <= 30; month++ {
			certainty := settle.Certainty{Errors: settle.Parts(draw.IntN(3)) * settle.Whole, Months: draw.IntN(4)}
			for dom := 1; dom <= 28; dom += 1 + draw.IntN(28) {
				if draw.IntN(3) > 0 {
					continue
				}

				d := netted(month, dom, int64(draw.IntN(30)-12), int64(draw.IntN(12)))
				d.Certainty = certainty
				d.Early -= flex.Pence(draw.IntN(3))
				days = append(days, d)
				delivered += d.Early
			}
		}

		for _, m := range settle.NetMonths(days, netted(30+draw.IntN(6), 1, 0, 0).Day) {
			credited, lapsed, floored = credited+m.Credited, lapsed+m.Lapsed, floored+m.Dropped
			if m.CarriedIn != carried {
				t.Fatalf("%s: %d carried in, %d out before it", m.First, m.CarriedIn, carried)
			}
			if m.Credited < 0 || m.Owed < m.Credited {
				t.Fatalf("%s: credited %d of %d", m.First, m.Credited, m.Owed)
			}

			carried = m.CarriedOut
		}

		if credited+lapsed+carried-floored != delivered {
			t.Fatalf("delivered %d: credited %d, lapsed %d, carried %d, floored %d", delivered, credited, lapsed, carried, floored)
		}
	}
}

// A baseline's standard error is that of one more day than those of its mean: against floating
// point.
func TestBaseline_StandardError(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 3))
	for range 300 {
		c := settle.Case{Day: flex.Day{Year: 2026, Month: 3, Dom: 12}, First: 36, Last: 36, Metering: settle.Boundary, Rule: settle.DefaultRule, Terms: settle.DefaultTerms}
		c.Meant = []flex.WattHours{-1000}
		c.Prices = []flex.PricedPeriod{{Period: c.Day.Period(36), Price: flex.FromGBPPerMWh(-100), Known: true}}
		all := map[flex.Day]float64{}

		for back := 30; back >= 0; back-- {
			m := settle.MeteredDay{Day: c.Day.Add(-back)}
			e := draw.IntN(4000) - 1000
			m.Set(36, flex.WattHours(e))
			all[m.Day] = float64(e)
			c.Metered = append(c.Metered, m)
		}

		r := mustSettle(t, &c)
		var sum, squares float64
		for _, d := range r.Used {
			sum += all[d]
		}

		n := float64(len(r.Used))
		for _, d := range r.Used {
			squares += (all[d] - sum/n) * (all[d] - sum/n)
		}

		want := math.Sqrt(squares / (n - 1) * (1 + 1/n))
		if got := float64(r.Periods[0].Error); got < want-1e-6 || got > want+1+1e-6 {
			t.Fatalf("%v Wh, not %v", got, want)
		}
		if got, want := float64(r.StandardError()), float64(r.Periods[0].Error)/1e6*100*100/2*1000; math.Abs(got-want) > 0.51 {
			t.Fatalf("%v thousandths of a penny, not %v", got, want)
		}
	}
}

// Events in one half-hour divide its error among them.
func TestBaseline_StandardErrorDivided(t *testing.T) {
	one, two, metered := combinedPeriod(t)
	if sum := one.Periods[0].Error + two.Periods[0].Error; sum != metered {
		t.Errorf("%d and %d Wh, of %d", one.Periods[0].Error, two.Periods[0].Error, metered)
	}
}

// combinedPeriod settles two events in one half-hour, and returns its whole error too.
func combinedPeriod(t *testing.T) (one, two *settle.Result, whole flex.WattHours) {
	t.Helper()
	c := settle.Case{Day: flex.Day{Year: 2026, Month: 3, Dom: 12}, First: 36, Last: 36, Metering: settle.Boundary, Rule: settle.DefaultRule, Terms: settle.DefaultTerms}
	c.Event[0], c.Meant = 1, []flex.WattHours{-1000}
	c.Prices = []flex.PricedPeriod{{Period: c.Day.Period(36), Price: flex.FromGBPPerMWh(100), Known: true}}

	for back := 30; back >= 0; back-- {
		m := settle.MeteredDay{Day: c.Day.Add(-back)}
		m.Set(36, flex.WattHours(500+back*37%11*90))
		c.Metered = append(c.Metered, m)
	}

	whole = mustSettle(t, &c).Periods[0].Error
	other := settle.EventPart{Event: flex.FlexEventID{2}, First: 36, Last: 36, Meant: []flex.WattHours{-500}}
	c.Others = []settle.EventPart{other}
	one = mustSettle(t, &c)
	c.Others = []settle.EventPart{{Event: c.Event, First: 36, Last: 36, Meant: c.Meant}}
	c.Event, c.Meant = other.Event, other.Meant
	two = mustSettle(t, &c)

	if whole == 0 || slices.Equal(one.Periods, two.Periods) {
		t.Fatal("nothing is tried")
	}

	return one, two, whole
}
