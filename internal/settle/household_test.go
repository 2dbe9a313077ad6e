package settle_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// household reads a home's half-hours, whose stamps are their ends, from a CSV with the
// columns LCLid, DateTime and KW (kWh in the half-hour, in truth).
func household(t *testing.T, file string) []settle.MeteredDay {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	var readings []flex.Reading
	for r := csv.NewReader(f); ; {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatal(err)
		}

		end, err1 := time.Parse("2006-01-02 15:04:05", strings.TrimSuffix(row[1], ".0000000"))
		kwh, err2 := strconv.ParseFloat(strings.TrimSpace(row[2]), 64)
		if err1 != nil || err2 != nil {
			continue // the heading, and a row without a value
		}

		readings = append(readings, flex.Reading{
			Label: flex.ProvisionalConsumption, Span: flex.Span{From: end.Add(-flex.HalfHour), To: end}, Value: flex.Micro(math.Round(kwh * 1e6)),
		})
	}

	return settle.HalfHours(settle.Boundary, readings)
}

// The baselines are tried on a real home: on days when nothing was asked of it, its evening
// should look like its baseline. The home may not be shipped; FLEXD_HOUSEHOLD names the file.
func TestHousehold(t *testing.T) {
	file := os.Getenv("FLEXD_HOUSEHOLD")
	if file == "" {
		t.Skip("FLEXD_HOUSEHOLD names no file of half-hours")
	}

	days := household(t, file)
	rules := map[string]settle.Rule{"mean": settle.DefaultRule, "mid 8 of 10": settle.DefaultRule, "mean, in-day": settle.DefaultRule}
	mid, inDay := rules["mid 8 of 10"], rules["mean, in-day"]
	mid.Method, inDay.InDay = settle.MiddleEight, true
	rules["mid 8 of 10"], rules["mean, in-day"] = mid, inDay

	for name, rule := range rules {
		var n, used, off, absolute float64
		full := 0
		for i := range days {
			c := settle.Case{Day: days[i].Day, First: 33, Last: 38, Metering: settle.Boundary, Metered: days[:i+1], Rule: rule, Terms: settle.DefaultTerms}
			if settle.ClockChange(c.Day) {
				continue
			}

			for p := c.First; p <= c.Last; p++ {
				c.Prices = append(c.Prices, flex.PricedPeriod{Period: c.Day.Period(p), Price: 1e6, Known: true})
			}

			r := mustSettle(t, &c)
			if r.Quality != settle.Full || r.Missing > 0 {
				continue
			}

			full++
			for _, p := range r.Periods {
				n++
				used += float64(p.Metered)
				off += float64(p.Flex)
				absolute += math.Abs(float64(p.Flex))
			}
		}

		t.Logf("%-12s %d evenings, %.0f Wh a half-hour, bias %+.1f Wh (%+.1f %%), mean error %.0f Wh", name, full, used/n, off/n, 100*off/used, absolute/n)
		if full < 300 || math.Abs(off/used) > 0.05 {
			t.Errorf("%s: %d evenings, biased by %.1f %%", name, full, 100*off/used)
		}
	}
}

// testHomes are homes of which nothing was asked: synthetic ones, and the household if it is there.
func testHomes(t *testing.T) map[string][]settle.MeteredDay {
	homes := map[string][]settle.MeteredDay{}
	for seed := range uint64(4) {
		homes[fmt.Sprintf("synthetic %d", seed)] = nobodyAsked(seed)
	}

	if file := os.Getenv("FLEXD_HOUSEHOLD"); file != "" {
		homes["household"] = household(t, file)
	}

	return homes
}

// A home of which nothing was asked, every evening half-hour an event, at £150 per MWh, half of
// it the user's. By event, each error of the baseline in the user's favour is paid and none
// against it: 0.48 p an event on the household's data, 0.07 p where credits net over a month,
// which is the season: in a month in which less is used than in the ten days before each
// evening, the errors do not cancel. A sum that must be beyond what the baselines err by is not
// credited.
func TestCrediting_NothingDelivered(t *testing.T) {
	var synthetic earnings
	for name, days := range testHomes(t) {
		e := evenings(t, days, asked{every: 1, last: 38})
		t.Logf("%s: %s", name, e)

		if name != "household" {
			synthetic.add(e)
			continue
		}

		if e.of(e.byMonth) >= 0.08 || e.byMonth > e.byEvent/6 {
			t.Errorf("household: %s", e)
		}
		if e.of(e.certain) >= 0.02 {
			t.Errorf("household: %s", e)
		}
	}

	t.Logf("synthetic together: %s", synthetic)
	if synthetic.of(synthetic.byMonth) >= 0.03 || synthetic.of(synthetic.byEvent) < 0.1 {
		t.Errorf("synthetic: %s", synthetic)
	}
	if synthetic.of(synthetic.certain) >= 0.02 {
		t.Errorf("synthetic: %s", synthetic)
	}
}

// A home that delivers keeps what it earns by month, whatever is carried on the way.
func TestCrediting_Delivered(t *testing.T) {
	for name, days := range testHomes(t) {
		for _, wh := range []flex.WattHours{20, 50, 100, 300} {
			e := evenings(t, days, asked{wh: wh, every: 1, last: 38})
			t.Logf("%s, %d Wh an event: %s, %.1f %% kept", name, wh, e, 100*e.certain/e.byMonth)

			if wh >= 50 && e.certain < 0.98*e.byMonth {
				t.Errorf("%s, %d Wh an event: %s", name, wh, e)
			}
			if e.certain > e.byMonth {
				t.Errorf("%s, %d Wh an event: %s, more than by month", name, wh, e)
			}
		}
	}
}

// A home with few and small events waits longer, and loses what lapses; it never earns more than
// by month. One that delivers nothing earns at most a quarter of that, where days with events are
// no days to compare with: events that share such days err alike.
func TestCrediting_FewEvents(t *testing.T) {
	for _, every := range []int{2, 7, 28} {
		for _, wh := range []flex.WattHours{0, 50, 100, 300, 1000} {
			var sum earnings
			for name, days := range testHomes(t) {
				if name != "household" {
					sum.add(evenings(t, days, asked{wh: wh, every: every, last: 33}))
				}
			}

			t.Logf("one half-hour in %d days, %d Wh: %s, %.1f %% kept", every, wh, sum, 100*sum.certain/sum.byMonth)
			if wh == 0 && sum.certain >= 0.25*sum.byMonth {
				t.Errorf("one half-hour in %d days: %s", every, sum)
			}
			if wh >= 1000 && sum.certain < 0.98*sum.byMonth {
				t.Errorf("one half-hour in %d days, %d Wh: %s", every, wh, sum)
			}
			if sum.certain > sum.byMonth {
				t.Errorf("one half-hour in %d days, %d Wh: %s, more than by month", every, wh, sum)
			}
		}
	}
}

// What few events earn sixty homes that deliver nothing, at the default certainty and at a greater
// one. Four homes are too few to say: one credit of theirs is half of the figure.
func TestCrediting_FewEventsOfManyHomes(t *testing.T) {
	for _, c := range []struct{ certainty, most float64 }{{2, 0.03}, {2.5, 0.02}} {
		for _, every := range []int{2, 7, 28} {
			var sum earnings
			for seed := range uint64(60) {
				sum.add(evenings(t, nobodyAsked(seed+100), asked{every: every, last: 33, certainty: c.certainty}))
			}

			t.Logf("certainty %g, one half-hour in %d days: %s", c.certainty, every, sum)
			if sum.of(sum.certain) >= c.most {
				t.Errorf("certainty %g, one half-hour in %d days: %s, at most %g p", c.certainty, every, sum, c.most)
			}
		}
	}
}

// asked is what is asked of a home in the evening: in each half-hour from the 33rd to a last one,
// once in so many days, what it then delivers.
type asked struct {
	wh          flex.WattHours
	every, last int
	certainty   float64 // 0: the default
}

// before returns the days before one on which something was asked, if some are left to compare
// with.
func (a asked) before(days []settle.MeteredDay, i int) (held []flex.Day) {
	for k := i - a.every; a.every > 1 && k >= max(0, i-settle.DefaultRule.LookBack); k -= a.every {
		held = append(held, days[k].Day)
	}
	return held
}

// earnings are what events earned their user in pence: floored each by itself, netted by month,
// and netted by month where a sum must be beyond its standard error.
type earnings struct{ events, byEvent, byMonth, certain float64 }

func (e *earnings) add(o earnings) {
	e.events += o.events
	e.byEvent += o.byEvent
	e.byMonth += o.byMonth
	e.certain += o.certain
}

// of is an amount by event.
func (e *earnings) of(pence float64) float64 { return pence / e.events }

func (e earnings) String() string {
	return fmt.Sprintf("%.0f events, %.4f p an event by event, %.4f p by month, %.4f p with certainty", e.events, e.of(e.byEvent), e.of(e.byMonth), e.of(e.certain))
}

// nobodyAsked makes two years of a home's half-hours: an evening peak with noise of its size.
func nobodyAsked(seed uint64) (days []settle.MeteredDay) {
	draw := rand.New(rand.NewPCG(seed, 29))
	first := flex.Day{Year: 2024, Month: 1, Dom: 1}
	for i := range 730 {
		d := settle.MeteredDay{Day: first.Add(i)}
		for n := 1; n <= d.Day.Periods(); n++ {
			d.Set(n, flex.WattHours(150+draw.ExpFloat64()*150))
		}
		days = append(days, d)
	}
	return days
}

// evenings settles evening half-hours as events of their own, in which so much less was used
// than on the data, and returns what they earn.
func evenings(
	t *testing.T,
	days []settle.MeteredDay,
	a asked,
) (e earnings) {
	t.Helper()
	var plain, certain []settle.DayNetted

	for i := range days {
		day := days[i].Day
		if settle.ClockChange(day) || i%a.every > 0 {
			continue
		}

		own := days[i]
		own.Wh = slices.Clone(own.Wh)
		for n := range own.Wh {
			own.Wh[n] -= a.wh
		}

		c := settle.Case{Day: day, Metering: settle.Boundary, Rule: settle.DefaultRule, Terms: settle.DefaultTerms}
		c.Terms.ByMonth = true
		c.EventDays = a.before(days, i)
		c.Metered = append(slices.Clone(days[max(0, i-settle.DefaultRule.LookBack):i]), own)
		netted := settle.DayNetted{Day: day}

		for n := 33; n <= a.last; n++ {
			c.First, c.Last, c.Meant = n, n, []flex.WattHours{-1000}
			c.Prices = []flex.PricedPeriod{{Period: day.Period(n), Price: flex.FromGBPPerMWh(150), Known: true}}
			r := mustSettle(t, &c)
			if r.Quality != settle.Full || r.Missing > 0 {
				continue
			}

			e.events++
			e.byEvent += float64(max(0, r.Credit))
			netted.Share += r.Owed
			netted.Early += r.Credit
			netted.Error += r.StandardError()
		}

		plain = append(plain, netted)
		netted.Certainty = settle.DefaultCertainty
		if a.certainty > 0 {
			netted.Certainty.Errors = settle.PartsOf(a.certainty)
		}
		certain = append(certain, netted)
	}

	last := days[len(days)-1].Day
	e.byMonth, e.certain = credited(plain, last), credited(certain, last)
	return e
}

// credited is what the days' months credit in all, in pence.
func credited(days []settle.DayNetted, until flex.Day) (pence float64) {
	for _, m := range settle.NetMonths(days, until) {
		pence += float64(m.Credited)
	}
	return pence
}
