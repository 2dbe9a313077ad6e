package settle_test

import (
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

func readVectors(
	t testing.TB,
	file string,
	into any,
) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func day(t testing.TB, s string) flex.Day {
	t.Helper()
	d, err := flex.ParseDay(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wh reads a decimal of kilowatt-hours exactly.
func wh(t testing.TB, kwh string) flex.WattHours {
	t.Helper()
	r, ok := new(big.Rat).SetString(kwh)
	if !ok {
		t.Fatalf("%q is not a number", kwh)
	}
	if r.Mul(r, big.NewRat(1000, 1)); !r.IsInt() {
		t.Fatalf("%s kWh is no whole number of watt-hours", kwh)
	}
	return flex.WattHours(r.Num().Int64())
}

func metered(
	t testing.TB,
	d string,
	values map[string]string,
) settle.MeteredDay {
	t.Helper()
	m := settle.MeteredDay{Day: day(t, d)}
	for n, kwh := range values {
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		m.Set(i, wh(t, kwh))
	}
	return m
}

type baselineVectors struct {
	History   map[string]map[string]string `json:"history_kwh"`
	EventDays []string                     `json:"event_days_excluded"`
	Event     struct {
		Date string
		SPs  []int
	}
	DaysUsed []string          `json:"days_used_working"`
	Metered  map[string]string `json:"metered_event_day"`
	Result   map[string]struct {
		Adjustment string `json:"adjustment_kwh_per_hh"`
		Periods    []struct {
			SP       int
			Baseline string `json:"baseline_kwh"`
			Metered  string `json:"metered_kwh"`
			Flex     string `json:"flex_kwh"`
		}
		Total string `json:"total_flex_kwh"`
	}
	NonWorking struct {
		Target string
		Days   []string `json:"days_used"`
	} `json:"non_working_example"`
	MiddleEight struct{ Days []string } `json:"mid8of10_example"`
}

// vectorCase is the worked example of the vectors: an event in the early evening of a
// Monday, with two event days and the Christmas holidays among the days before it.
func vectorCase(t testing.TB) (*settle.Case, *baselineVectors) {
	t.Helper()
	var v baselineVectors
	readVectors(t, "baseline_bl01.json", &v)
	c := &settle.Case{
		Day: day(t, v.Event.Date), First: v.Event.SPs[0], Last: v.Event.SPs[len(v.Event.SPs)-1],
		Metering: settle.Boundary, Rule: settle.DefaultRule, Terms: settle.DefaultTerms,
	}

	for d, values := range v.History {
		c.Metered = append(c.Metered, metered(t, d, values))
	}
	c.Metered = append(c.Metered, metered(t, v.Event.Date, v.Metered))
	slices.SortFunc(c.Metered, func(a, b settle.MeteredDay) int { return a.Day.Start().Compare(b.Day.Start()) })
	for _, d := range v.EventDays {
		c.EventDays = append(c.EventDays, day(t, d))
	}
	for n := c.First; n <= c.Last; n++ {
		c.Prices = append(c.Prices, flex.PricedPeriod{Period: c.Day.Period(n), Price: flex.FromGBPPerMWh(250), Known: true})
	}
	return c, &v
}

func mustSettle(t testing.TB, c *settle.Case) *settle.Result {
	t.Helper()
	r, err := settle.Settle(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func dates(days []flex.Day) (s []string) {
	for _, d := range days {
		s = append(s, d.String())
	}
	return s
}

func TestSettle_BaselineVectors(t *testing.T) {
	for name, want := range map[string]bool{"unadjusted": false, "in_day_adjusted": true} {
		t.Run(name, func(t *testing.T) {
			c, v := vectorCase(t)
			c.Rule.InDay = want
			r := mustSettle(t, c)
			if !slices.Equal(dates(r.Used), v.DaysUsed) {
				t.Errorf("days used %v, want %v", dates(r.Used), v.DaysUsed)
			}

			if r.Quality != settle.Full || r.Missing != 0 {
				t.Errorf("quality %s with %d missing, want full with none", r.Quality, r.Missing)
			}
			expect := v.Result[name]
			if r.Adjustment != wh(t, expect.Adjustment) || r.Adjusted != want {
				t.Errorf("adjusted %t by %d Wh, want %t by %s kWh", r.Adjusted, r.Adjustment, want, expect.Adjustment)
			}

			for i, p := range expect.Periods {
				got := r.Periods[i]
				if got.Period != p.SP || got.Baseline != wh(t, p.Baseline) || got.Metered != wh(t, p.Metered) || got.Flex != wh(t, p.Flex) {
					t.Errorf("period %+v, want %+v", got, p)
				}
			}
			if r.Flex != wh(t, expect.Total) {
				t.Errorf("flex %d Wh, want %s kWh", r.Flex, expect.Total)
			}
		})
	}
}

func TestSettle_NonWorkingDay(t *testing.T) {
	c, v := vectorCase(t)
	c.Day = day(t, v.NonWorking.Target)
	r := mustSettle(t, c)
	if !slices.Equal(dates(r.Used), v.NonWorking.Days) {
		t.Errorf("days used %v, want %v", dates(r.Used), v.NonWorking.Days)
	}
}

func TestSettle_MiddleEight(t *testing.T) {
	c, v := vectorCase(t)
	c.Rule.Method = settle.MiddleEight
	r := mustSettle(t, c)
	if !slices.Equal(dates(r.Used), v.MiddleEight.Days) {
		t.Errorf("days used %v, want %v", dates(r.Used), v.MiddleEight.Days)
	}
}

func TestSettle_QualityByDays(t *testing.T) {
	for _, tt := range []struct {
		lookBack int
		want     settle.Quality
		paid     bool
	}{
		{60, settle.Full, true},
		{17, settle.Partial, true},      // nine working days that held no event
		{10, settle.Partial, true},      // five
		{9, settle.Insufficient, false}, // four
		{0, settle.Insufficient, false},
	} {
		c, _ := vectorCase(t)
		c.Rule.LookBack = tt.lookBack
		r := mustSettle(t, c)
		if r.Quality != tt.want || (r.Credit > 0) != tt.paid {
			t.Errorf("looking back %d days: quality %s over %v, credit %d; want %s, paid %t",
				tt.lookBack, r.Quality, dates(r.Used), r.Credit, tt.want, tt.paid)
		}
	}
}

// A day that lacks one of the event's half-hours does not count, and the next older one
// takes its place; a day that lacks any other half-hour does.
func TestSettle_IncompleteDay(t *testing.T) {
	c, _ := vectorCase(t)
	i := slices.IndexFunc(c.Metered, func(m settle.MeteredDay) bool { return m.Day == day(t, "2025-01-30") })
	c.Metered[i].Known &^= 1 << (38 - 1)
	if r := mustSettle(t, c); r.Used[1] != day(t, "2025-01-30") {
		t.Errorf("a day without period 38 was left out of an event in 35 and 36: %v", dates(r.Used))
	}

	c.Metered[i].Known &^= 1 << (36 - 1)
	r := mustSettle(t, c)
	if slices.Contains(r.Used, day(t, "2025-01-30")) || !slices.Contains(r.Used, day(t, "2025-01-15")) {
		t.Errorf("days used %v, want 2025-01-15 in place of 2025-01-30", dates(r.Used))
	}
	if !slices.Contains(r.Excluded, settle.Excluded{Day: day(t, "2025-01-30"), Reason: settle.DataIncomplete}) {
		t.Errorf("left out %v, want 2025-01-30 for incomplete data", r.Excluded)
	}
}

// Half-hours without a reading or a price count for nothing until they have both.
func TestSettle_ProvisionalUntilComplete(t *testing.T) {
	c, _ := vectorCase(t)
	whole := mustSettle(t, c)
	last := len(c.Metered) - 1
	c.Metered[last].Known &^= 1 << (36 - 1)
	part := mustSettle(t, c)
	if part.Missing != 1 || !part.Provisional() || part.Flex != whole.Periods[0].Flex {
		t.Errorf("without period 36: %d missing, flex %d; want 1 and %d", part.Missing, part.Flex, whole.Periods[0].Flex)
	}

	c.Metered[last].Known |= 1 << (36 - 1)
	c.Prices[0].Known = false
	if r := mustSettle(t, c); r.Missing != 1 || r.Flex != whole.Periods[1].Flex {
		t.Errorf("without a price in 35: %d missing, flex %d; want 1 and %d", r.Missing, r.Flex, whole.Periods[1].Flex)
	}
	c.Prices[0].Known, c.Final = true, true
	if r := mustSettle(t, c); r.Provisional() {
		t.Error("a final result with all readings and prices is provisional")
	}
}

func TestSettle_Frozen(t *testing.T) {
	c, _ := vectorCase(t)
	c.Rule.Frozen = day(t, "2025-01-06")
	r := mustSettle(t, c)
	if r.Used[0] != day(t, "2025-01-03") {
		t.Errorf("newest day used %s, want the last working day before the freeze, 2025-01-03", r.Used[0])
	}
}

func TestSettle_Nominated(t *testing.T) {
	c, _ := vectorCase(t)
	c.Rule.Method, c.Metering = settle.Nominated, settle.Asset // its own meter: the plan is the baseline
	if r := mustSettle(t, c); r.Quality != settle.Insufficient || r.Credit != 0 {
		t.Errorf("without a nomination: %s, %d p; want insufficient and nothing", r.Quality, r.Credit)
	}
	c.Nominated = metered(t, "2025-02-03", map[string]string{"35": "1.620", "36": "1.090"})
	r := mustSettle(t, c)
	if r.Flex != -2500 || r.Gross != 625_000 || r.Quality != settle.Full {
		t.Errorf("flex %d Wh earns %d (%s), want -2500 and 0.625 GBP", r.Flex, r.Gross, r.Quality)
	}
}

// On clock-change days an event is compared with the same local time of ordinary days.
func TestSettle_ClockChange(t *testing.T) {
	for _, tt := range []struct {
		day         string
		first, last int
		slots       []int // of an ordinary day
	}{
		{"2025-03-30", 2, 4, []int{2, 5, 6}},             // 00:30, then 02:00 and 02:30
		{"2025-10-26", 2, 8, []int{2, 3, 4, 3, 4, 5, 6}}, // 01:00 and 01:30 twice
	} {
		c := &settle.Case{Day: day(t, tt.day), First: tt.first, Last: tt.last, Rule: settle.DefaultRule, Terms: settle.DefaultTerms}

		for back := 40; back > 0; back-- {
			m := settle.MeteredDay{Day: c.Day.Add(-back)}
			for n := range 48 {
				m.Set(n+1, flex.WattHours(100*(n+1)))
			}
			c.Metered = append(c.Metered, m)
		}

		r := mustSettle(t, c)
		for i, slot := range tt.slots {
			if want := flex.WattHours(100 * slot); r.Periods[i].Baseline != want {
				t.Errorf("%s period %d: baseline %d, want %d", tt.day, r.Periods[i].Period, r.Periods[i].Baseline, want)
			}
		}
	}
}

func TestSettle_RefusesContradictions(t *testing.T) {
	for name, breakIt := range map[string]func(*settle.Case){
		"period 0":         func(c *settle.Case) { c.First = 0 },
		"backwards":        func(c *settle.Case) { c.Last = c.First - 1 },
		"period 49":        func(c *settle.Case) { c.Last = 49 },
		"year unknown":     func(c *settle.Case) { c.Day.Year = settle.LastHolidayYear + 1 },
		"days unordered":   func(c *settle.Case) { slices.Reverse(c.Metered) },
		"day twice":        func(c *settle.Case) { c.Metered = slices.Insert(c.Metered, 1, c.Metered[0]) },
		"too much energy":  func(c *settle.Case) { c.Metered[3].Set(35, settle.MaxEnergy+1) },
		"price off scale":  func(c *settle.Case) { c.Prices[0].Price = settle.MaxPrice + 1 },
		"share over whole": func(c *settle.Case) { c.Terms.Share = settle.Whole + 1 },
		"negative losses":  func(c *settle.Case) { c.Terms.LossFactor = -1 },
	} {
		c, _ := vectorCase(t)

		breakIt(c)
		if _, err := settle.Settle(c); err == nil {
			t.Errorf("%s: settled", name)
		}
	}
}

func TestBankHolidays(t *testing.T) {
	var v struct{ Holidays map[string][]string }
	readVectors(t, "bank_holidays_england_wales.json", &v)

	for year, want := range v.Holidays {
		var got []string
		for d := day(t, year+"-01-01"); strconv.Itoa(d.Year) == year; d = d.Add(1) {
			if settle.BankHoliday(d) {
				got = append(got, d.String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", year, got, want)
		}
	}
}

// Every year has eight bank holidays, all on weekdays, but for those proclaimed.
func TestBankHolidays_EightAYear(t *testing.T) {
	more := map[int]int{2011: 9, 2012: 9, 2022: 10, 2023: 9}
	for y := settle.FirstHolidayYear; y <= settle.LastHolidayYear; y++ {
		n := 0
		for d := (flex.Day{Year: y, Month: time.January, Dom: 1}); d.Year == y; d = d.Add(1) {
			if settle.BankHoliday(d) {
				n++
				if w := d.Weekday(); w == time.Saturday || w == time.Sunday {
					t.Errorf("%s is a %s", d, w)
				}
			}
		}

		if want := max(8, more[y]); n != want {
			t.Errorf("%d has %d bank holidays, want %d", y, n, want)
		}
	}
}
