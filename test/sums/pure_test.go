package sums_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// settleTerms are the terms as settlement takes them.
func (t *terms) settleTerms() (settle.Rule, settle.Terms) {
	rule := settle.DefaultRule
	rule.Method, rule.InDay, rule.InDayCap = settle.Method(t.method), t.inDay, flex.WattHours(t.cap)
	parts := func(r interface{ Float64() (float64, bool) }) settle.Parts {
		f, _ := r.Float64()
		return settle.PartsOf(f)
	}
	of := settle.Terms{Share: parts(t.share), PaidEarly: parts(t.early), LossFactor: parts(t.loss), ByMonth: !t.byEvent, ClawBack: t.claw}
	if t.even {
		rule.Rounding, of.Rounding = settle.HalfEven, settle.HalfEven
	}
	return rule, of
}

func assetID(d int) flex.AssetID { return flex.AssetID{byte(d + 1)} }

// cases makes the events of the home's own day cases, without a database: those that are
// settled together at the boundary.
func (h *drawn) cases(day date) (groups [][]*steered, cases [][]*settle.Case) {
	var readings []flex.Reading
	for _, kept := range h.kept { // each time once, as a store keeps them
		for _, x := range kept {
			r := flex.Reading{AssetID: assetID(x.device), Label: flex.Label(x.kind), Span: flex.Span{From: instant(x.from), To: instant(x.to)}, Value: flex.Micro(x.value)}
			for _, at := range h.restarts[keptKey{x.device, x.kind}] {
				r.Restarted = r.Restarted || at > x.to-1800 && at <= x.to
			}
			readings = append(readings, r)
		}
	}

	meter := settle.NewMeter(settle.Boundary, readings, settle.SupplyLimits(flex.Supply{Import: flex.Watts(h.supply), Export: flex.Watts(h.supply)}))
	var eventDays []flex.Day
	var own []*steered
	for i, e := range h.events {
		e.id = i
		if eventDays = append(eventDays, dayOf(e.day)); e.day == day {
			own = append(own, e)
		}
	}

	for _, g := range meeting(own) {
		var of []*settle.Case
		for _, e := range g {
			d := h.devices[e.device]
			power := flex.Watts(d.power)
			if power == 0 {
				power = 7400
			}

			c := &settle.Case{Event: flex.FlexEventID{byte(e.id + 1)}, Day: dayOf(day), First: e.first, Last: e.last, Meant: energies(e.meant), EventDays: eventDays}
			c.Most = settle.MostMoved(power, d.battery, c.Meant)
			c.Rule, c.Terms = h.terms.settleTerms()
			for n := 1; n <= day.halves(); n++ {
				c.Prices = append(c.Prices, flex.PricedPeriod{Period: c.Day.Period(n), Price: flex.Price(price(day.at(n))), Known: true})
			}
			of = append(of, c)
		}

		for _, c := range of {
			for _, o := range of {
				if o != c {
					c.Others = append(c.Others, settle.EventPart{Event: o.Event, First: o.First, Last: o.Last, Meant: o.Meant, Most: o.Most})
				}
			}
		}

		if meter.Give(of[0]) {
			for _, c := range of[1:] {
				c.Metering, c.Label, c.Metered = of[0].Metering, of[0].Label, of[0].Metered
			}
			groups, cases = append(groups, g), append(cases, of)
		}
	}
	return groups, cases
}

// difference is what settlement and the oracle say differently of a group of events.
func (h *drawn) difference(t *testing.T, g []*steered, cases []*settle.Case) string {
	group := h.groupOf(g)
	group.eventDays = h.daysOf(func(*steered) bool { return true })
	sums := group.settle(-1, nil)
	if sums == nil {
		return "the oracle knows no half-hour"
	}

	for i, s := range sums {
		r, err := settle.Settle(cases[i])
		if err != nil {
			t.Fatal(err)
		}
		quality := string(r.Quality)
		if r.Quality == settle.Insufficient {
			quality = ""
		}
		got := fmt.Sprint(int64(r.Flex), r.Missing, quality, int64(r.Credit), int64(r.Owed), int64(r.Kept+r.Owed), r.Label)
		want := fmt.Sprint(s.flex, s.missing, s.quality, s.credit, s.owed, s.gross, s.kind)

		for k, p := range s.parts {
			x := r.Periods[k]
			got += fmt.Sprint(" ", x.Known && x.Compared)
			want += fmt.Sprint(" ", p.known && p.compared)
			if p.known && p.compared {
				got += fmt.Sprint(" ", int64(x.Metered), int64(x.Baseline), int64(x.Flex), int64(x.Unassigned))
				want += fmt.Sprint(" ", p.metered, p.baseline, p.flex, p.unassigned)
			}
		}

		if got != want {
			return fmt.Sprintf("settlement says %s, the oracle %s", got, want)
		}
	}
	return ""
}

// Random sites without a database, by the methods that need no more than a boundary's readings:
// ten thousand with FLEXD_LONG, 500 otherwise, each day of a clock change and one without in turn.
func TestSums_Settle(t *testing.T) {
	sites := 500
	if os.Getenv("FLEXD_LONG") != "" {
		sites = 10_000
	}
	days := []date{dateOf(2025, 3, 30), dateOf(2025, 10, 26), dateOf(2025, 6, 11), dateOf(2025, 4, 4), dateOf(2025, 11, 3)}
	names := slices.Sorted(maps.Keys(termsDrawn()))
	names = slices.DeleteFunc(names, func(n string) bool { return termsDrawn()[n].method == "nominated" })
	events, together, paid := 0, 0, 0

	for i := range sites {
		day := days[i%len(days)]
		h := draw(rand.New(rand.NewPCG(uint64(i), 2025)), day, termsDrawn()[names[i%len(names)]])
		h.readings = append(h.readings, h.late...)
		h.index()
		groups, cases := h.cases(day)

		for k, g := range groups {
			if text := h.difference(t, g, cases[k]); text != "" {
				t.Fatalf("site %d, %s, %s: %s", i, dayOf(day), h.terms.method, text)
			}
			events += len(g)
			if len(g) > 1 {
				together++
			}

			if r, err := settle.Settle(cases[k][0]); err == nil && r.Credit != 0 {
				paid++
			}
		}
	}

	fmt.Fprintf(t.Output(), "%d sites: %d events, %d groups of several, %d first events credited\n", sites, events, together, paid)
	if events < sites || together < sites/10 || paid < sites/10 {
		t.Error("the sites try too little")
	}
}
