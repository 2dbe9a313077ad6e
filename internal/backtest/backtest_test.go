package backtest

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// home is a case of a month in which every day is alike: cheap by night, a load by day,
// dearest in the evening, with the clocks going back on the 26th.
func evenDays() *Case {
	c := &Case{
		Battery: home.Battery{Power: 3000, Capacity: 8000},
		Load:    forecast.Series{}, Roof: forecast.Series{},
		From: flex.Day{Year: 2025, Month: 10, Dom: 10}, To: flex.Day{Year: 2025, Month: 10, Dom: 31},
		Known:   func(at time.Time) time.Time { return flex.DayAt(at).Add(1).Start() },
		Working: func(flex.Day) bool { return true },
	}
	hour := func(p flex.Period) int { return p.Start().In(flex.London).Hour() }
	for d := c.From.Add(-30); d != c.To.Add(8); d = d.Add(1) {
		for _, p := range periodsOf(d) {
			c.Load[p] = 150
			if h := hour(p); h >= 16 && h < 22 {
				c.Load[p] = 600
			}
		}
	}

	c.Buy = func(p flex.Period) (float64, bool) {
		if hour(p) < 6 {
			return 8, true
		}
		return 30, true
	}
	c.Sell = func(flex.Period) (float64, bool) { return 4, true }
	return c
}

func TestEvenDays(t *testing.T) {
	c := evenDays()
	told := 0
	r := Run(c, func(done, total int) bool {
		if told++; done != told || total != 22 {
			t.Errorf("told %d of %d", done, total)
		}
		return true
	})
	if len(r.Bills) != 22 || r.Skipped != 0 || told != 22 {
		t.Fatalf("%d days, %d skipped", len(r.Bills), r.Skipped)
	}

	// 12 half-hours by night at 8 p, 24 by day and 12 in the evening at 30 p, for 22 days, and
	// the hour that came twice.
	if want := 22*(12*150*8+24*150*30+12*600*30)/1000.0 + 2*150*8/1000.0; r.Total.None < want-1e-6 || r.Total.None > want+1e-6 {
		t.Errorf("without a battery %.2f p, want %.2f", r.Total.None, want)
	}
	if r.MissedBy > 1 {
		t.Errorf("days that are all alike are missed by %d Wh", r.MissedBy)
	}

	if r.Total.SelfUse > r.Total.None || r.Total.Plan > 0.7*r.Total.None {
		t.Errorf("%+v", r.Total)
	}
	if r.Total.Foresight > r.Total.Plan+1 || r.Total.Plan > r.Total.Foresight*1.02 {
		t.Errorf(
			"where nothing is uncertain the plan costs %.1f p and foresight %.1f",
			r.Total.Plan,
			r.Total.Foresight,
		)
	}
	if again := Run(evenDays(), nil); again.Total != r.Total {
		t.Errorf("%+v, then %+v", r.Total, again.Total)
	}
}

func TestNoBattery(t *testing.T) {
	c := evenDays()
	c.Battery = home.Battery{}
	r := Run(c, nil)
	if r.Total.SelfUse != r.Total.None || r.Total.Plan != r.Total.None || r.Total.Foresight != r.Total.None {
		t.Errorf("a battery that holds nothing changes the bill: %+v", r.Total)
	}
}

// TestTheFutureIsNotKnown: what comes after a day changes nothing that was planned in it.
func TestTheFutureIsNotKnown(t *testing.T) {
	before := Run(evenDays(), nil)
	c := evenDays()
	cut := flex.Day{Year: 2025, Month: 10, Dom: 20}
	for p := range c.Load {
		if !p.Start().Before(cut.Start()) {
			c.Load[p] *= 3
		}
	}

	buy := c.Buy
	c.Buy = func(p flex.Period) (float64, bool) {
		b, ok := buy(p)
		if !p.Start().Before(cut.Start()) {
			b *= 2
		}
		return b, ok
	}

	after := Run(c, nil)
	for i, b := range before.Bills {
		if b.Day.Start().Before(cut.Start()) && (after.Bills[i].Plan != b.Plan || after.Bills[i].SelfUse != b.SelfUse) {
			t.Errorf(
				"%s: %.2f p, and %.2f with another future",
				b.Day,
				b.Plan,
				after.Bills[i].Plan,
			)
		}
	}
}

func TestDaysThatLackSomething(t *testing.T) {
	c := evenDays()
	delete(c.Load, flex.Day{Year: 2025, Month: 10, Dom: 12}.Period(7))
	buy := c.Buy
	c.Buy = func(p flex.Period) (float64, bool) {
		b, ok := buy(p)
		return b, ok && p != flex.Day{Year: 2025, Month: 10, Dom: 15}.Period(30)
	}
	r := Run(c, nil)
	if r.Skipped != 2 || len(r.Bills) != 20 || r.Bills[2].Day.Dom != 13 {
		t.Errorf("%d skipped of %d", r.Skipped, len(r.Bills))
	}
}

func TestShow(t *testing.T) {
	r := Result{Skipped: 3, Drawn: 123_456, MissedBy: 89, Optimum: -500}
	for i, b := range []Bills{{5000, 4000, 2500, 2000}, {6000, 5000, -500, -900}, {0, 0, 0, 0}} {
		r.Bills = append(r.Bills, Bill{flex.Day{Year: 2025, Month: time.Month(10 + i), Dom: 1}, b})
		r.Total.add(b)
	}
	var table strings.Builder
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}

	const want = `    month  days  no battery  self-use  planned  rolling plan
  2025-10     1       50.00     40.00    25.00         20.00
  2025-11     1       60.00     50.00    -5.00         -9.00
  2025-12     1        0.00      0.00     0.00          0.00
      all     3      110.00     90.00    20.00         11.00

In pounds. The true optimum, exact and over all the days at once, costs −£5.00; the rolling plan knows three days ahead.
The plan costs £70.00 less than self-use alone: 73.7 % of the £95.00 that the optimum would save.
The home drew 123 kWh; its load was forecast with a mean error of 89 Wh in a half-hour.
Left out for want of loads or prices: 3 days.
`

	if table.String() != want {
		t.Errorf("%s\nwant\n%s", table.String(), want)
	}

	chart := r.SVG()
	for d := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is no XML: %v", err)
		}
	}

	if n := strings.Count(chart, `fill="#2f7d5d"`); n != 4 || strings.Contains(chart, `height="-`) || strings.Contains(chart, "NaN") {
		t.Errorf("%d bars of the plan: %s", n, chart)
	}
	if empty := (Result{}).SVG(); strings.Contains(empty, "NaN") || strings.Contains(empty, "Inf") {
		t.Errorf("a chart of nothing: %s", empty)
	}
}

func TestReadHome(t *testing.T) {
	const head = "start,load_kwh,roof_kwh\n"
	h, err := ReadHome(strings.NewReader(head+"2012-10-12T00:00:00Z,0.25,\n2012-10-12T01:30:00+01:00,,0.1\n"), 1456)
	first := flex.Day{Year: 2016, Month: 10, Dom: 7}.Period(3) // 00:00 UTC is 01:00 in London; the weekday stays
	if err != nil || len(h.Load) != 1 || h.Load[first] != 250 || len(h.Roof) != 1 || h.Roof[first.Add(1)] != 100 {
		t.Fatalf("%v, %v", h, err)
	}
	if h.First != first || h.Last != first.Add(1) {
		t.Errorf("from %v to %v", h.First, h.Last)
	}

	for row, want := range map[string]string{
		"yesterday,1,\n":                                     "line 2: start",
		"2012-10-12T00:10:00Z,1,\n":                          "line 2: start",
		"2012-10-12T00:00:00Z,-1,\n":                         "line 2: load_kwh",
		"2012-10-12T00:00:00Z,50.01,\n":                      "line 2: load_kwh",
		"2012-10-12T00:00:00Z,NaN,\n":                        "line 2: load_kwh",
		"2012-10-12T00:00:00Z,1,x\n":                         "line 2: roof_kwh",
		"2012-10-12T00:00:00Z,1,\n2012-10-12T00:00:00Z,1,\n": "line 3: start: this half-hour",
	} {
		if _, err := ReadHome(strings.NewReader(head+row), 0); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

// TestShow_Savings: a plan that costs more than self-use alone says so, without a negative saving.
func TestShow_Savings(t *testing.T) {
	for _, c := range []struct {
		name                   string
		selfUse, plan, optimum float64
		want                   string
	}{
		{"less", 4000, 2500, 2000, "The plan costs £15.00 less than self-use alone: 75.0 % of the £20.00 that the optimum would save."},
		{"more", -61, -52, -104, "The plan costs £0.09 more than self-use alone; the optimum would save £0.43."},
		{"nothing to save", 463, 463, 463.0001, "The plan costs £0.00 less than self-use alone: 0.0 % of the £0.00 that the optimum would save."},
		{"more by rounding", 463, 463.01, 463, "The plan costs £0.00 less than self-use alone: 0.0 % of the £0.00 that the optimum would save."},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Result{Total: Bills{SelfUse: c.selfUse, Plan: c.plan}, Optimum: c.optimum}
			if got := r.savings(); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
