package settle_test

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
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
