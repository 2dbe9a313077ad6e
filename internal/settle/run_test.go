package settle_test

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestCase_Golden(t *testing.T) {
	c, _ := vectorCase(t)
	c.Event[15] = 7
	c.Rule.InDay = true
	got := c.AppendText(nil)
	got = append(append(got, "--\n"...), mustSettle(t, c).AppendText(nil)...)
	const file = "testdata/case.golden"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes of a case or a result changed; if meant, change settle.Version and run with -update\n%s", got)
	}
}

// What is settled apart decides what the events before one earned, and so how its own is
// rounded, also in half-hours that are not its own.
func TestCase_HashBeside(t *testing.T) {
	c, _ := vectorCase(t)
	c.Event[15] = 2
	c.Others = []settle.EventPart{{Event: flex.FlexEventID{15: 1}, First: c.First, Last: c.Last}}
	c.First++
	hash, before := c.Hash(), mustSettle(t, c).Before
	c.SettledElsewhere = []settle.SettledElsewhere{{Period: c.First - 1, Flex: -100, Known: true}}
	if mustSettle(t, c).Before == before {
		t.Fatal("what the event before it earned is the same")
	}
	if c.Hash() == hash {
		t.Error("another case has the same hash")
	}
}

// drawCase makes a small random case, around a clock change or not, with holes.
func drawCase(t *rapid.T) *settle.Case {
	start := flex.Day{Year: 2025, Month: 10, Dom: rapid.IntRange(20, 31).Draw(t, "dom")}
	c := &settle.Case{Day: start, Metering: settle.Asset, Rule: settle.DefaultRule, Terms: settle.DefaultTerms}
	c.First = rapid.IntRange(1, start.Periods()).Draw(t, "first")
	c.Last = min(start.Periods(), c.First+rapid.IntRange(0, 3).Draw(t, "more"))
	c.Rule.Method = rapid.SampledFrom([]settle.Method{settle.Mean, settle.MiddleEight, settle.Nominated}).Draw(t, "method")
	c.Rule.InDay = rapid.Bool().Draw(t, "inday")
	c.Rule.InDayCap = flex.WattHours(rapid.IntRange(0, 200).Draw(t, "cap"))

	draw := func(d flex.Day) settle.MeteredDay {
		m := settle.MeteredDay{Day: d}
		base := rapid.IntRange(0, 3000).Draw(t, "base")
		for n := range d.Periods() {
			m.Set(n+1, flex.WattHours(base+n*17%301))
		}
		if rapid.IntRange(0, 9).Draw(t, "hole") == 0 {
			m.Known &^= 1 << rapid.IntRange(0, 47).Draw(t, "which")
		}
		return m
	}

	for back := 25; back >= 0; back-- {
		if rapid.IntRange(0, 14).Draw(t, "absent") > 0 {
			c.Metered = append(c.Metered, draw(start.Add(-back)))
		}
		if back > 0 && rapid.IntRange(0, 14).Draw(t, "event") == 0 {
			c.EventDays = append(c.EventDays, start.Add(-back))
		}
	}

	c.Nominated = draw(start)
	for n := c.First; n <= c.Last; n++ {
		c.Prices = append(c.Prices, flex.PricedPeriod{
			Period: start.Period(n), Price: flex.Price(rapid.Int64Range(-150e6, 1500e6).Draw(t, "price")),
			Known: rapid.IntRange(0, 9).Draw(t, "priced") > 0,
		})
	}
	return c
}

func settled(t *rapid.T, c *settle.Case) []byte {
	r, err := settle.Settle(c)
	if err != nil {
		t.Fatal(err)
	}
	return r.AppendText(nil)
}

// Same inputs, same bytes: settling again, with the unordered inputs in another order and
// with readings added that no rule looks at, changes neither hash nor result.
func TestSettle_SameInputsSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		hash, result := c.Hash(), settled(t, c)
		slices.Reverse(c.EventDays)
		slices.Reverse(c.Prices)
		c.EventDays = append(c.EventDays, c.Day.Add(-61), c.Day.Add(3))

		for i := range c.Metered { // what lies behind the last day that is looked at
			if r, err := settle.Settle(c); err == nil && len(r.Used)+len(r.Excluded) > 0 && c.Rule.Method == settle.Mean {
				oldest := c.Day
				for _, d := range r.Used {
					oldest = d
				}

				for _, x := range r.Excluded {
					if x.Day.Start().Before(oldest.Start()) {
						oldest = x.Day
					}
				}
				if c.Metered[i].Day.Start().Before(oldest.Start()) {
					c.Metered[i].Set(c.First, 4242)
				}
			}
		}

		after := settle.MeteredDay{Day: c.Day.Add(1)}
		after.Set(1, 5)
		before := settle.MeteredDay{Day: c.Day.Add(-61)}
		before.Set(1, 5)
		c.Metered = append(append([]settle.MeteredDay{before}, c.Metered...), after)
		if c.Hash() != hash || !bytes.Equal(settled(t, c), result) {
			t.Fatal("inputs that do not matter changed the hash or the result")
		}
	})
}

// A result never changes without its hash: cases of one hash settle alike.
func TestSettle_HashCoversWhatMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		hash, result := c.Hash(), settled(t, c)
		m := &c.Metered[rapid.IntRange(0, len(c.Metered)-1).Draw(t, "day")]

		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			m.Set(rapid.IntRange(1, len(m.Wh)).Draw(t, "period"), 9999)
		case 1:
			m.Known &^= 1 << rapid.IntRange(0, 47).Draw(t, "period")
		case 2:
			c.EventDays = append(c.EventDays, m.Day)

		case 3:
			c.Prices[0].Price++
		case 4:
			c.Terms.Share /= 3
		case 5:
			c.Rule.Holidays = append(c.Rule.Holidays, m.Day)
		}

		if !bytes.Equal(settled(t, c), result) && c.Hash() == hash {
			t.Fatal("another result under the same hash")
		}
	})
}

// The parts of a result add up: flex over the periods, user and platform over the gross.
func TestSettle_AddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		r, err := settle.Settle(c)
		if err != nil {
			t.Fatal(err)
		}
		var moved flex.WattHours
		var exact settle.PicoPounds
		missing := 0

		for _, p := range r.Periods {
			moved, exact = moved+p.Flex, exact+p.Revenue
			if !p.Known {
				missing++
			}
			if p.Known && len(r.Used) > 0 && p.Flex != p.Metered-p.Baseline {
				t.Fatalf("period %+v", p)
			}
		}

		if moved != r.Flex || missing != r.Missing {
			t.Fatalf("flex %d and %d missing, the periods say %d and %d", r.Flex, r.Missing, moved, missing)
		}
		if r.Quality == settle.Insufficient {
			if r.Gross != 0 || r.Credit != 0 || r.Kept != 0 {
				t.Fatal("paid on an insufficient baseline")
			}
			return
		}
		if r.Credit+r.Kept != exact.Pence(settle.HalfAway) || r.Credit < 0 {
			t.Fatalf("user %d and platform %d of %d", r.Credit, r.Kept, exact.Pence(settle.HalfAway))
		}

		for i, d := range r.Used {
			if slices.Contains(c.EventDays, d) || settle.ClockChange(d) || settle.Working(d) != settle.Working(c.Day) {
				t.Fatalf("used the day %s", d)
			}
			if i > 0 && !d.Start().Before(r.Used[i-1].Start()) {
				t.Fatalf("days used are not newest first: %v", dates(r.Used))
			}
		}
	})
}

func TestDiff(t *testing.T) {
	c, _ := vectorCase(t)
	before := mustSettle(t, c)
	c.Metered[len(c.Metered)-1].Set(36, 190)
	c.Final = true
	after := mustSettle(t, c)
	gone, added := *before, *before
	gone.Event[0], added.Event[0] = 1, 2
	var got []string
	for _, d := range settle.Diff([]*settle.Result{&gone, before}, []*settle.Result{after, &added}) {
		got = append(got, d.What+": "+d.Before+" -> "+d.After)
	}

	want := []string{
		"period 36: metered 90 baseline 921 flex -831 Wh at 250000000 earns 207750000000 -> metered 190 baseline 921 flex -731 Wh at 250000000 earns 182750000000",
		"final: false -> true",
		"flex: -1632 Wh -> -1532 Wh",
		"gross: 408000 millionths of a pound -> 383000 millionths of a pound",
		"credit: 20 p -> 19 p",
		"kept: 21 p -> 19 p",
		"event: settled -> ",
		"event:  -> settled",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := settle.Diff([]*settle.Result{before}, []*settle.Result{before}); len(d) != 0 {
		t.Errorf("a run differs from itself: %v", d)
	}
}

func TestRunHash_OrderDoesNotMatter(t *testing.T) {
	a, b := flex.FlexEventID{1}, flex.FlexEventID{2}
	one := settle.RunHash([]settle.Inputs{{Event: a, Hash: settle.Hash{1}}, {Event: b, Hash: settle.Hash{2}}})
	if settle.RunHash([]settle.Inputs{{Event: b, Hash: settle.Hash{2}}, {Event: a, Hash: settle.Hash{1}}}) != one {
		t.Error("the hash depends on the order of its cases")
	}
	if settle.RunHash([]settle.Inputs{{Event: a, Hash: settle.Hash{2}}, {Event: b, Hash: settle.Hash{1}}}) == one {
		t.Error("the hash does not depend on which event had which inputs")
	}
}

func BenchmarkSettle(b *testing.B) {
	c, _ := vectorCase(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := settle.Settle(c); err != nil {
			b.Fatal(err)
		}
		_ = c.Hash()
	}
}
