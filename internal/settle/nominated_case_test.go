package settle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// nominatedCase is an evening half-hour of a home that used 500 Wh in it on each of forty days
// before, with a car that used 3,000 Wh more on every third of these.
func nominatedCase() *settle.Case {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	const n = 36
	c := &settle.Case{
		Event: flex.FlexEventID{1}, Day: day, First: n, Last: n, Meant: []flex.WattHours{-3700}, Most: 3700, Metering: settle.Boundary,
		Prices: []flex.PricedPeriod{{Period: day.Period(n), Price: flex.FromGBPPerMWh(100), Known: true}},
		Rule:   settle.DefaultRule, Terms: settle.DefaultTerms,
	}

	c.Rule.Method = settle.Nominated
	for back := 40; back >= 0; back-- {
		home := settle.MeteredDay{Day: day.Add(-back)}
		used := home
		home.Set(n, 500)
		used.Set(n, 0)
		if back%3 == 1 {
			home.Set(n, 3500)
			used.Set(n, 3000)
		}

		c.Metered = append(c.Metered, home)
		c.Used = append(c.Used, used)
	}
	return c
}

// nominate gives the case a stay's plan of full power at 7.4 kW, of which so much is shown.
func nominate(c *settle.Case, drawn flex.WattHours) {
	at := c.Day.Period(c.First)
	stay := settle.Stay{Span: flex.Span{From: at.Start(), To: at.Add(20).Start()}, Drawn: drawn}
	stay.Plan = stay.FullPowerPlan(7400)
	c.Nominated = settle.MeteredDay{Day: c.Day}
	c.Nominated.Set(c.First, stay.SupportedPlan()[0])
	c.Bounds = stay.Bounds(at, 1, 7400)
}

func TestSettle_NominatedAtABoundary(t *testing.T) {
	for _, c := range []struct {
		name    string
		drawn   flex.WattHours // in the car's stay
		metered flex.WattHours
		change  func(*settle.Case)
		flexed  flex.WattHours
		quality settle.Quality
	}{
		{"a car that charged later", 10_000, 500, nil, -3700, settle.Full},
		{"a car that took 1 kWh later", 1000, 500, nil, -1000, settle.Full},
		{"nothing shows that it could", 0, 500, nil, 0, settle.Full},
		{"nothing shows it, and the sun shines", 0, -3000, nil, 0, settle.Full},
		{"nothing shows it, and the oven is on", 0, 3500, nil, 0, settle.Full},
		{"the home used 200 Wh more", 10_000, 700, nil, -3500, settle.Full},
		{"no more than its plan, whatever the home used less", 10_000, 0, nil, -3700, settle.Full},

		{"what the car used is known on some days alone", 10_000, 500, func(c *settle.Case) {
			for back := 1; back <= 40; back++ {
				if back%3 != 1 {
					c.Used[40-back] = settle.MeteredDay{Day: c.Day.Add(-back)}
				}
			}
		}, -3700, settle.Partial},
		{"a plan and a meter a tenth above the rated power", 10_000, 430, func(c *settle.Case) {
			c.Nominated.Set(36, 4070)

			c.Bounds = []settle.Bound{{Least: -4070}}
		}, -3700, settle.Full},
		{"what the car used before is not known", 10_000, 500, func(c *settle.Case) { c.Used = nil }, 0, settle.Insufficient},
	} {
		t.Run(c.name, func(t *testing.T) {
			test := nominatedCase()
			test.Metered[40].Set(36, c.metered)
			nominate(test, c.drawn)
			if c.change != nil {
				c.change(test)
			}

			r := mustSettle(t, test)
			if r.Flex != c.flexed || r.Quality != c.quality {
				t.Errorf("flex %d Wh (%s), want %d (%s)", r.Flex, r.Quality, c.flexed, c.quality)
			}
		})
	}
}

// What a car could have taken is divided among those that are shown to be there.
func TestSettle_NominatedBeside(t *testing.T) {
	there, absent := nominatedCase(), nominatedCase()
	nominate(there, 10_000)
	nominate(absent, 0)
	absent.Event = flex.FlexEventID{2}
	claim := func(c *settle.Case) []settle.EventPart {
		return []settle.EventPart{{Event: c.Event, First: c.First, Last: c.Last, Meant: c.Meant, Most: c.Most, Bounds: c.Bounds}}
	}
	there.Others, absent.Others = claim(absent), claim(there)
	absent.Nominated = there.Nominated // of the meter, of all that is behind it
	if a, b := mustSettle(t, there), mustSettle(t, absent); a.Flex != -3700 || b.Flex != 0 {
		t.Errorf("the car that is there %d Wh, the absent one %d; want -3700 and 0", a.Flex, b.Flex)
	}
}

func TestSettle_Pending(t *testing.T) {
	c := nominatedCase()
	nominate(c, 0)
	c.Pending = true
	if r := mustSettle(t, c); r.Missing != 1 {
		t.Errorf("while more may be shown %d are missing, want 1", r.Missing)
	}
	c.Final = true
	if r := mustSettle(t, c); r.Missing != 0 {
		t.Errorf("at the end %d are missing", r.Missing)
	}
}

// On 1,000 days on which nothing could be moved (no car, a full car, a car of which nothing is
// told; with or without a roof; by the boundary or by the asset's own meter) a nominated
// baseline credits nothing. The plan alone, as it once was the baseline, credits most of them.
func TestSettle_NullDays(t *testing.T) {
	random := rand.New(rand.NewPCG(2026, 11))
	credited, planted := 0, 0
	for i := range 1000 {
		c := nominatedCase()
		first := 1 + random.IntN(46)
		c.First, c.Last = first, first+random.IntN(3)
		c.Terms.ClawBack, c.Meant = i%2 == 0, nil
		c.Prices, c.Metered, c.Used = nil, nil, nil
		roof := flex.WattHours(0)
		if random.IntN(2) == 0 {
			roof = flex.WattHours(random.IntN(2000))
		}

		for back := 60; back >= 0; back-- {
			home := settle.MeteredDay{Day: c.Day.Add(-back)}
			used := settle.MeteredDay{Day: c.Day.Add(-back)}
			for n := range 48 {
				drew := flex.WattHours(random.IntN(4) * random.IntN(1200) * min(back, 1)) // on the day itself nothing
				home.Set(n+1, flex.WattHours(random.IntN(900))+drew-roof)
				used.Set(n+1, drew)
			}
			c.Metered, c.Used = append(c.Metered, home), append(c.Used, used)
		}

		at := c.Day.Period(first)
		stay := settle.Stay{Span: flex.Span{From: at.Start(), To: at.Start()}} // no car
		if i%3 > 0 {
			stay.To = at.Add(24).Start() // a car
			stay.Plan = stay.FullPowerPlan(7400)
		}
		if i%3 == 1 { // that is full, by its own meter
			stay.UseMeter(c.Used[60:])
		}
		if i%4 == 0 {
			c.Metering, c.Metered = settle.Asset, c.Used
		}

		c.Nominated = settle.MeteredDay{Day: c.Day}
		for n := c.First; n <= c.Last; n++ {
			c.Meant = append(c.Meant, -3700)
			c.Prices = append(c.Prices, flex.PricedPeriod{Period: c.Day.Period(n), Price: flex.FromGBPPerMWh(float64(random.IntN(400) - 50)), Known: true})
			c.Nominated.Set(n, 0)
			if shown := stay.SupportedPlan(); n-first < len(shown) {
				c.Nominated.Set(n, shown[n-first])
			}
		}

		c.Bounds = stay.Bounds(at, c.Last-c.First+1, 7400)
		if r := mustSettle(t, c); r.Credit != 0 || r.Flex != 0 || r.Gross != 0 {
			credited++
			t.Errorf("day %d: %d Wh, %d p", i, r.Flex, r.Credit)
		}

		for n := c.First; n <= c.Last; n++ { // the plan itself, of a car that need not be shown
			c.Nominated.Set(n, 3700)
		}
		c.Bounds = nil
		if r := mustSettle(t, c); r.Credit > 0 {
			planted++
		}
	}
	if credited != 0 || planted < 500 {
		t.Errorf("%d of 1,000 null days are credited, want none; by the plan alone %d, want most", credited, planted)
	}
}
