package sums_test

import "slices"

// stay is what a car's stay shows that it took.
type stay struct {
	from, to       int64
	drawn, fastest int64
	shown          []int64
}

// ownHalf is what a device's own meter tells of a half-hour, as far as it can have measured it.
func (h *home) ownHalf(d int, at int64) wh {
	for _, kind := range ownKinds {
		if e := h.within(meter(d), d, kind, at, -1); e.known {
			return e
		}
	}
	return wh{}
}

// show works out shown(n) of docs/money.md.
func (h *home) show(e *steered) *stay {
	s := &stay{from: e.stay[0], to: e.stay[1]}
	for at := s.from; at < s.to; at += 1800 {
		own := h.ownHalf(e.device, at)
		if own.known {
			s.drawn += max(0, own.e)
			s.fastest = max(s.fastest, own.e)
		}
	}
	if s.drawn == 0 {
		s.drawn, s.fastest = h.risen(e.device, s), 0
	}
	late, left := int64(0), s.drawn
	for i := range int(s.to-s.from) / 1800 {
		plan := int64(0)
		if i < len(e.stayPlan) {
			plan = e.stayPlan[i]
		}
		shown := min(plan+late, left)
		if s.fastest > 0 {
			shown = min(shown, s.fastest)
		}
		shown = max(0, shown)
		late, left = plan+late-shown, left-shown
		s.shown = append(s.shown, shown)
	}
	return s
}

// risen is by how much the state of charge rose in the stay, in watt-hours.
func (h *home) risen(d int, s *stay) (most int64) {
	levels := h.around(d, stateOfCharge, s.from, s.to)
	for i, low := range levels {
		for _, high := range levels[i:] {
			if low.to >= s.from && high.from <= s.to {
				most = max(most, high.value-low.value)
			}
		}
	}
	return most * h.devices[d].capacity / 100_000_000
}

// ownTells reports whether the asset's own meter tells of the event.
func (h *home) ownTells(e *steered) bool {
	for n := e.first; n <= e.last; n++ {
		if h.ownHalf(e.device, e.day.at(n)).known {
			return true
		}
	}
	return false
}

// nominatedIn is what is shown of the plans of all events of the group in a half-hour: of each
// car once, whichever of its events it is.
func (g *group) nominatedIn(n int) (e int64) {
	for i, o := range g.events {
		again := func(b *steered) bool { return b.device == o.device && b.stay == o.stay && g.shown[b] != nil }
		if g.shown[o] != nil && slices.ContainsFunc(g.events[:i], again) {
			continue
		}
		if s := g.shown[o]; s != nil {
			if k := int(g.day.at(n)-s.from) / 1800; g.day.at(n) >= s.from && k < len(s.shown) {
				e += s.shown[k]
			}
		} else if k := n - o.first; k >= 0 && k < len(o.plan) {
			e += o.plan[k]
		}
	}
	return e
}

// cars sets what the cars of the events used on the days before.
func (g *group) cars() {
	g.carsOnly = func(day date, n int) wh {
		total, done := wh{known: true}, map[int]bool{}
		for _, e := range g.events {
			if done[e.device] {
				continue
			}
			done[e.device] = true
			own := g.ownHalf(e.device, day.at(n))
			if !own.known && e.session && e.stay != [2]int64{} {
				own.known = true // it was not plugged in, as far as no session says
				for _, s := range g.sessions[e.device] {
					if s[0] < day.at(n)+1800 && s[1] > day.at(n) {
						own.known = false
					}
				}
				own.e = 0
			}
			total.e, total.known = total.e+own.e, total.known && own.known
		}
		return total
	}
}

// settled settles all events of the home.
func (h *home) settled() (sums []*sum) {
	h.index()
	days := map[date][]*steered{}
	for _, e := range h.events {
		days[e.day] = append(days[e.day], e)
	}
	for _, events := range days {
		sums = append(sums, h.settledOn(events)...)
	}
	return sums
}

func (h *home) settledOn(events []*steered) (sums []*sum) {
	nominated := h.terms.method == "nominated"
	shown := map[*steered]*stay{}
	var own, shared []*steered
	for _, e := range events {
		if nominated && e.stay != [2]int64{} {
			shown[e] = h.show(e)
		}
		if h.devices[e.device].qualified || nominated && h.ownTells(e) {
			own = append(own, e)
		} else {
			shared = append(shared, e)
		}
	}
	alone := func(e *steered) []*sum {
		g := h.groupOf([]*steered{e})
		g.shown, g.eventDays = shown, h.daysOf(func(o *steered) bool { return o.device == e.device })
		found := g.settle(meter(e.device), nil)
		if found == nil {
			s := &sum{steered: e, own: true, missing: e.last - e.first + 1}
			for n := e.first; n <= e.last; n++ {
				s.parts = append(s.parts, part{n: n})
			}
			found = []*sum{s}
		}
		return found
	}
	apart := map[int]wh{}
	for _, e := range own {
		s := alone(e)
		sums = append(sums, s...)
		for _, p := range s[0].parts {
			a, there := apart[p.n]
			if !there {
				a.known = true
			}
			a.e += p.metered - p.baseline
			a.known = a.known && p.read && s[0].quality != ""
			apart[p.n] = a
		}
	}
	for _, together := range meeting(shared) {
		g := h.groupOf(together)
		g.shown, g.eventDays = shown, h.daysOf(func(*steered) bool { return true })
		if nominated {
			g.cars()
			g.eventDays = h.daysOf(func(o *steered) bool {
				return !slices.ContainsFunc(together, func(e *steered) bool { return e.device == o.device })
			})
		}
		found := g.settle(-1, apart)
		for _, e := range together {
			if found == nil {
				sums = append(sums, alone(e)...)
			}
		}
		sums = append(sums, found...)
	}
	return sums
}

func (h *home) daysOf(of func(*steered) bool) map[date]bool {
	days := map[date]bool{}
	for _, e := range h.events {
		if of(e) {
			days[e.day] = true
		}
	}
	return days
}

// meeting puts events together whose half-hours meet, through others too.
func meeting(events []*steered) (groups [][]*steered) {
	taken := map[*steered]bool{}
	for _, e := range events {
		if taken[e] {
			continue
		}
		g := []*steered{e}
		taken[e] = true
		for grew := true; grew; {
			grew = false
			for _, o := range events {
				meets := func(x *steered) bool { return o.first <= x.last && x.first <= o.last }
				if !taken[o] && slices.ContainsFunc(g, meets) {
					g, grew, taken[o] = append(g, o), true, true
				}
			}
		}
		slices.SortFunc(g, func(a, b *steered) int { return a.id - b.id })
		groups = append(groups, g)
	}
	return groups
}

// balance is what the home's user has: by month the sum of its events' shares or nothing, or
// event by event.
func (h *home) balance(sums []*sum) (total int64) {
	months := map[int]int64{}
	for _, s := range sums {
		if s.missing > 0 && !h.final {
			continue
		}
		if h.terms.byEvent || h.terms.claw {
			total += s.credit
		} else {
			months[s.day.month()] += s.credit
		}
	}
	for _, m := range months {
		total += max(0, m)
	}
	return total
}
