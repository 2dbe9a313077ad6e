package settle_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
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

// A home of which nothing was asked, every evening half-hour an event, at £150 per MWh, half of
// it the user's. By event, each error of the baseline in the user's favour is paid and none
// against it: 0.48 p an event on the household's data, 0.07 p where credits net over a month.
// What is left is the season: in a month in which less is used than in the ten days before each
// evening, the errors do not cancel.
func TestCrediting_NothingDelivered(t *testing.T) {
	homes := map[string][]settle.MeteredDay{}
	for seed := range uint64(4) {
		homes[fmt.Sprintf("synthetic %d", seed)] = nobodyAsked(seed)
	}
	if file := os.Getenv("FLEXD_HOUSEHOLD"); file != "" {
		homes["household"] = household(t, file)
	}

	var events, byEvent, byMonth float64
	for name, days := range homes {
		n, each, net := evenings(t, days)
		if name == "household" {
			t.Logf("household: %.0f events, %.4f p an event by event, %.4f p by month", n, each/n, net/n)
			if net/n >= 0.08 || net > each/6 {
				t.Errorf("household: %.4f p an event", net/n)
			}
			continue
		}
		events, byEvent, byMonth = events+n, byEvent+each, byMonth+net
	}
	t.Logf("synthetic: %.0f events, %.4f p an event by event, %.4f p by month", events, byEvent/events, byMonth/events)
	if byMonth/events >= 0.03 || byEvent/events < 0.1 {
		t.Errorf("synthetic: %.4f p an event by month, %.4f p by event", byMonth/events, byEvent/events)
	}
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

// evenings settles every evening half-hour as an event of its own and returns how many there
// are, and what they earn in pence floored each by itself, and netted by month.
func evenings(t *testing.T, days []settle.MeteredDay) (events, byEvent, byMonth float64) {
	t.Helper()
	months := map[[2]int]flex.Pence{}
	for i := range days {
		c := settle.Case{Day: days[i].Day, Metering: settle.Boundary, Metered: days[:i+1], Rule: settle.DefaultRule, Terms: settle.DefaultTerms}
		c.Terms.ByMonth = true
		if settle.ClockChange(c.Day) {
			continue
		}
		for n := 33; n <= 38; n++ {
			c.First, c.Last, c.Meant = n, n, []flex.WattHours{-1000}
			c.Prices = []flex.PricedPeriod{{Period: c.Day.Period(n), Price: flex.FromGBPPerMWh(150), Known: true}}
			r := mustSettle(t, &c)
			if r.Quality != settle.Full || r.Missing > 0 {
				continue
			}
			events++
			byEvent += float64(max(0, r.Credit))
			months[[2]int{c.Day.Year, int(c.Day.Month)}] += r.Credit
		}
	}
	for _, p := range months {
		byMonth += float64(max(0, p))
	}
	return events, byEvent, byMonth
}
