package flex_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"flexd/internal/flex"
)

func vector[T any](t *testing.T, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func day(t *testing.T, s string) flex.Day {
	t.Helper()
	d, err := flex.ParseDay(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func TestSettlementPeriodVectors(t *testing.T) {
	v := vector[struct {
		Days []struct {
			Date    string `json:"settlement_date"`
			Periods int
			First   string `json:"first_start_utc"`
			End     string `json:"end_utc"`
			Map     [][3]any
		}
	}](t, "settlement_periods.json")
	if len(v.Days) == 0 {
		t.Fatal("no vectors")
	}

	for _, e := range v.Days {
		d := day(t, e.Date)
		if d.Periods() != e.Periods || utc(d.Span().From) != e.First || utc(d.Span().To) != e.End {
			t.Errorf("%s: %d periods over %v", d, d.Periods(), d.Span())
		}

		for _, row := range e.Map {
			n, start := int(row[0].(float64)), row[1].(string)
			p := d.Period(n)
			if utc(p.Start()) != start {
				t.Errorf("%s period %d starts %s, want %s", d, n, utc(p.Start()), start)
			}

			local := p.Start().In(flex.London)
			form := "15:04"
			if _, offset := local.Zone(); offset != 0 {
				form = "15:04-07:00"
			}
			if local.Format(form) != row[2].(string) {
				t.Errorf("%s period %d starts at %s on the wall, want %s", d, n, local.Format(form), row[2])
			}
		}
	}
}

// TestEveryDayOfTenYears counts every half-hour of ten years one after the other.
func TestEveryDayOfTenYears(t *testing.T) {
	var (
		first = flex.Day{Year: 2020, Month: 1, Dom: 1}
		next  = flex.PeriodAt(first.Start())
		short = map[int]int{}
	)

	for d := first; d.Year < 2030; d = d.Add(1) {
		short[d.Periods()]++
		for n := 1; n <= d.Periods(); n++ {
			p := d.Period(n)
			if p != next || p.Start() != next.Span().From || p.End() != next.Add(1).Start() {
				t.Fatalf("%s period %d is %s, want %s", d, n, utc(p.Start()), utc(next.Start()))
			}
			for _, at := range []time.Time{p.Start(), p.Start().Add(17 * time.Minute), p.End().Add(-1)} {
				if flex.PeriodAt(at) != p || flex.DayAt(at) != d {
					t.Fatalf("%s is not in %s period %d", at, d, n)
				}
			}

			if gotDay, gotN := p.SettlementPeriod(); gotDay != d || gotN != n {
				t.Fatalf("%s period %d says it is %s period %d", d, n, gotDay, gotN)
			}
			if e := flex.EFADayAt(p.Start()); !e.Span().Contains(p.Start()) || (e != flex.EFADay(d) && e != flex.EFADay(d).Add(1)) {
				t.Fatalf("%s period %d is in the EFA day %s", d, n, e)
			}
			next = next.Add(1)
		}
		if again := day(t, d.String()); again != d || d.Start().In(flex.London).Weekday() != d.Weekday() {
			t.Fatalf("%s reads back as %s", d, again)
		}
	}

	if short[46] != 10 || short[50] != 10 || len(short) != 3 {
		t.Errorf("days by their number of periods: %v, want ten of 46 and ten of 50", short)
	}
}

func TestBefore1970(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)
	if p := flex.PeriodAt(at); utc(p.Start()) != "1969-12-31T23:30:00Z" {
		t.Errorf("%s is in the period from %s", at, utc(p.Start()))
	}
}

func TestEFAVectors(t *testing.T) {
	v := vector[struct {
		Days []struct {
			Date      string `json:"efa_date"`
			Start     string `json:"start_utc"`
			End       string `json:"end_utc"`
			HalfHours int    `json:"half_hours"`
			Blocks    []struct {
				Block     int
				Start     string `json:"start_utc"`
				End       string `json:"end_utc"`
				HalfHours int    `json:"half_hours"`
			}
		}
	}](t, "efa_days.json")

	if len(v.Days) == 0 {
		t.Fatal("no vectors")
	}

	check := func(name string, s flex.Span, from, to string, n int) {
		if utc(s.From) != from || utc(s.To) != to || int(s.Len()/flex.HalfHour) != n {
			t.Errorf("%s: %s to %s, want %s to %s, %d half-hours", name, utc(s.From), utc(s.To), from, to, n)
		}
	}

	for _, e := range v.Days {
		d := flex.EFADay(day(t, e.Date))
		check(d.String(), d.Span(), e.Start, e.End, e.HalfHours)
		if len(e.Blocks) != flex.EFABlocks {
			t.Errorf("%s has %d blocks", d, len(e.Blocks))
		}

		for _, b := range e.Blocks {
			check(d.String(), d.Block(b.Block), b.Start, b.End, b.HalfHours)
		}
		if flex.EFADayAt(d.Span().From) != d || flex.EFADayAt(d.Span().To.Add(-1)) != d || flex.EFADayAt(d.Span().To) != d.Add(1) {
			t.Errorf("%s does not hold its own first and last instants alone", d)
		}
	}
}

// published is the last EFA day whose curve is out if each comes out at 14:00 in London
// on the day before.
func published(now time.Time) flex.EFADay {
	d := flex.EFADay(flex.DayAt(now))
	if now.In(flex.London).Hour() >= 14 {
		return d.Add(1)
	}
	return d
}

func TestCurveHorizonVectors(t *testing.T) {
	rows := vector[[]struct {
		Now   time.Time
		Why   string
		First string `json:"first_start"`
		End   string `json:"end_exclusive"`
		Rows  int
	}](t, "price_curve_horizon.json")
	if len(rows) == 0 {
		t.Fatal("no vectors")
	}

	for _, e := range rows {
		s := flex.CurveHorizon(e.Now, published(e.Now))
		if utc(s.From) != e.First || utc(s.To) != e.End || int(s.Len()/flex.HalfHour) != e.Rows {
			t.Errorf("%s: %s to %s, want %s to %s", e.Why, utc(s.From), utc(s.To), e.First, e.End)
		}
	}
}

func TestCurveHorizonEdges(t *testing.T) {
	for _, c := range []struct {
		now, published string
		rows           int
	}{
		{"2025-01-15T13:59:59Z", "2025-01-15", 19},
		{"2025-01-15T14:00:00Z", "2025-01-16", 66},
		{"2025-01-15T14:00:00Z", "2025-01-15", 18}, // nothing came in at 14:00
		{"2025-01-15T10:00:00Z", "2025-01-01", 26}, // today's periods are asked for even without prices
		{"2025-01-15T10:00:00Z", "2025-02-01", 74}, // never beyond tomorrow
		{"2025-01-15T22:59:59Z", "2025-01-15", 1},
		{"2025-01-15T23:00:00Z", "2025-01-15", 0},
		{"2025-01-15T23:59:59Z", "2025-01-16", 47},
		{"2025-01-16T00:00:00Z", "2025-01-16", 46},
		{"2025-10-26T00:00:00Z", "2025-10-26", 46},
	} {
		now, _ := time.Parse(time.RFC3339, c.now)
		s := flex.CurveHorizon(now, flex.EFADay(day(t, c.published)))
		if rows := int(s.Len() / flex.HalfHour); rows != c.rows {
			t.Errorf("at %s with %s published: %d rows, want %d", c.now, c.published, rows, c.rows)
		}
	}
}
