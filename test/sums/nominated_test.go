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
	read := false
	for at := s.from; at < s.to; at += 1800 {
		own := h.ownHalf(e.device, at)
		read = read || own.known
		if own.known {
			s.drawn += max(0, own.e)
			s.fastest = max(s.fastest, own.e)
		}
	}
	if !read {
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

// kinds adds up what devices took, or gave, by kind of device: what passes a charger is read of it and of the car at it, and
// counts once.
type kinds struct {
	chargers, cars [2]int64 // taken and given
	others         int64
}

func (g *group) add(k *kinds, d int, e int64) {
	way := 0
	if e < 0 {
		way = 1
	}
	switch {
	case g.devices[d].battery:
		k.others += e
	case g.devices[d].car:
		k.cars[way] += max(e, -e)
	default:
		k.chargers[way] += max(e, -e)
	}
}

func (g *group) once(k kinds) int64 {
	if g.fault == "a car counts beside its charger" {
		return k.others + k.chargers[0] + k.cars[0] - k.chargers[1] - k.cars[1]
	}
	return k.others + max(k.chargers[0], k.cars[0]) - max(k.chargers[1], k.cars[1])
}

// nominatedIn is what is shown of the plans of all events of the group in a half-hour: of each
// car once, whichever of its events it is.
func (g *group) nominatedIn(n int) int64 {
	var sum kinds
	for i, o := range g.events {
		again := func(b *steered) bool { return b.device == o.device && b.stay == o.stay && g.shown[b] != nil }
		if g.shown[o] != nil && slices.ContainsFunc(g.events[:i], again) {
			continue
		}

		if s := g.shown[o]; s != nil {
			if k := int(g.day.at(n)-s.from) / 1800; g.day.at(n) >= s.from && k < len(s.shown) {
				g.add(&sum, o.device, s.shown[k])
			}
		} else if k := n - o.first; k >= 0 && k < len(o.plan) {
			g.add(&sum, o.device, o.plan[k])
		}
	}
	return g.once(sum)
}

// used sets what the devices of the events used on the days before.
func (g *group) used() {
	g.usedThen = func(day date, n int) wh {
		var sum kinds
		known, done := true, map[int]bool{}

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

			g.add(&sum, e.device, own.e)
			known = known && own.known
		}

		return wh{g.once(sum), known}
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

	alone := slices.Clone(own)
	var groups []*group
	for _, together := range meeting(shared) {
		g := h.groupOf(together)
		g.shown, g.eventDays = shown, h.daysOf(func(*steered) bool { return true })
		if nominated {
			g.used()
			g.eventDays = h.daysOf(func(o *steered) bool {
				return !slices.ContainsFunc(together, func(e *steered) bool { return e.device == o.device })
			})
		}

		if g.settle(-1, nil) == nil {
			alone = append(alone, together...)
		} else {
			groups = append(groups, g)
		}
	}

	apart := map[int]wh{}
	for _, s := range h.settledAlone(alone, shown) {
		sums = append(sums, s)
		if slices.Contains(own, s.steered) {
			for _, p := range s.parts {
				add(apart, p.n, wh{p.metered - p.baseline - p.rest, p.read && s.quality != ""})
			}
		}
	}

	for _, g := range groups {
		sums = append(sums, g.settle(-1, apart)...)
	}
	return sums
}

// add adds what is set apart of a half-hour, which is known where all of it is.
func add(apart map[int]wh, n int, e wh) {
	a, there := apart[n]
	apart[n] = wh{a.e + e.e, e.known && (a.known || !there)}
}

// settledAlone settles events on their devices' own meters: the cars' beyond what the chargers deviated by.
func (h *home) settledAlone(events []*steered, shown map[*steered]*stay) (sums []*sum) {
	one := func(e *steered, apart map[int]wh) *sum {
		g := h.groupOf([]*steered{e})
		g.shown, g.eventDays = shown, h.daysOf(func(o *steered) bool { return o.device == e.device })
		if found := g.settle(meter(e.device), apart); found != nil {
			return found[0]
		}
		s := &sum{steered: e, own: true, missing: e.last - e.first + 1}
		for n := e.first; n <= e.last; n++ {
			s.parts = append(s.parts, part{n: n})
		}
		return s
	}

	type way struct {
		n    int
		less bool
	}
	given := map[way]int64{}
	var cars []*steered
	for _, e := range events {
		if h.devices[e.device].car {
			cars = append(cars, e)
			continue
		}

		s := one(e, nil)
		sums = append(sums, s)
		for _, p := range s.parts {
			if deviation := p.metered - p.baseline; p.read && s.quality != "" && !h.devices[e.device].battery {
				given[way{p.n, deviation < 0}] += max(deviation, -deviation)
			}
		}
	}

	slices.SortStableFunc(cars, func(a, b *steered) int { return a.device - b.device })
	for _, e := range cars {
		s, apart := one(e, nil), map[int]wh{}

		for _, p := range s.parts {
			w, deviation := way{p.n, p.metered < p.baseline}, p.metered-p.baseline
			counted := min(given[w], max(deviation, -deviation))
			if !p.read || s.quality == "" || counted == 0 || h.fault == "a car counts beside its charger" {
				continue
			}
			given[w] -= counted
			if w.less {
				counted = -counted
			}
			add(apart, p.n, wh{counted, true})
		}

		sums = append(sums, one(e, apart))
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
		if s.missing > 0 && !h.final || h.left(s.steered) {
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
