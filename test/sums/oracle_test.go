package sums_test

import (
	"math/big"
	"slices"
	"sort"
)

// The kinds of readings, by the names that docs/money.md gives them.
const (
	importRegister  = "boundary_lifetime_import_energy_kwh"
	exportRegister  = "boundary_lifetime_export_energy_kwh"
	provisional     = "provisional_consumption_kwh"
	boundaryPower   = "boundary_import_kw"
	chargerEnergy   = "charger_consumption_energy_kwh"
	chargerRegister = "charger_lifetime_consumption_energy_kwh"
	inverterPower   = "battery_inverter_import_kw"
	stateOfCharge   = "battery_state_of_charge_pct"
)

var (
	boundaryKinds = []string{importRegister, provisional, boundaryPower}
	ownKinds      = []string{chargerEnergy, chargerRegister, inverterPower}
)

// sent is a reading: seconds, and millionths of its unit.
type sent struct {
	device   int
	kind     string
	from, to int64
	value    int64
}

// terms are what a home is settled on.
type terms struct {
	method        string
	inDay         bool
	cap           int64
	share, early  *big.Rat
	loss          *big.Rat
	even          bool
	byEvent, claw bool
}

// device is an asset of a home.
type device struct {
	power     int64 // watts; 0: never given
	battery   bool
	car       bool // else it is a charger
	qualified bool // its own meter
	capacity  int64
	gone      int64 // when it was taken away; 0: never
}

// steered is an event. Of a car the stay is known, and its plan without the market from the
// half-hour in which the stay begins.
type steered struct {
	id          int // in the order of ids
	device      int
	day         date
	first, last int
	meant       []int64
	plan        []int64
	stay        [2]int64
	stayPlan    []int64
	session     bool
	paid        []paid
}

// paid is a time in which an instruction called the event's device for what it did, and what it pays a megawatt-hour.
type paid struct {
	from, to, price int64
}

// home is a site and all that counts for its money.
type home struct {
	devices  []device
	supply   int64 // watts each way
	readings []sent
	restarts map[keptKey][]int64 // when a register was replaced, or began anew
	events   []*steered
	sessions map[int][][2]int64 // by device: its sessions
	prices   map[int64]int64    // micro-pounds a megawatt-hour, by the half-hour's first instant
	terms    terms
	final    bool
	fault    string // a mistake that is made on purpose

	kept  map[keptKey][]sent
	known map[knownKey]wh
}

type keptKey struct {
	device int
	kind   string
}

type knownKey struct {
	device int
	kind   string
	at     int64
	taking int // the device that the exports are from; -1: none
}

// wh is an energy in watt-hours, if it is known.
type wh struct {
	e     int64
	known bool
}

// part is what a half-hour comes to for an event.
type part struct {
	n                           int
	metered, baseline, flex     int64
	deviation, unassigned, rest int64
	read, compared, known       bool
}

// sum is what an event comes to.
type sum struct {
	*steered
	own          bool // by its asset's own meter
	kind         string
	quality      string
	parts        []part
	flex         int64
	missing      int
	credit, owed int64
	gross        int64 // in whole pence
}

func (h *home) index() {
	h.kept, h.known = map[keptKey][]sent{}, map[knownKey]wh{}
	for _, r := range h.readings {
		key := keptKey{r.device, r.kind}
		at := slices.IndexFunc(h.kept[key], func(o sent) bool { return o.from == r.from && o.to == r.to })
		if at >= 0 {
			h.kept[key][at] = r
			continue
		}
		h.kept[key] = append(h.kept[key], r)
	}

	for key := range h.kept {
		sort.Slice(h.kept[key], func(i, k int) bool { return h.kept[key][i].to < h.kept[key][k].to })
	}
}

// around returns the readings that end after an instant and begin before another.
func (h *home) around(d int, kind string, from, to int64) []sent {
	all := h.kept[keptKey{d, kind}]
	i := sort.Search(len(all), func(i int) bool { return all[i].to >= from })
	k := sort.Search(len(all), func(i int) bool { return all[i].to > to+7200 })
	return all[i:k]
}

// rise is what a register rose by in the half-hour.
func (h *home) rise(d int, kind string, at int64) (int64, bool) {
	var marks [2]int64
	var read [2]bool
	if h.fault == "two registers are read as one" {
		for o := range h.devices {
			if len(h.around(o, kind, at, at+1800)) > 0 {
				d = o
			}
		}
	}

	for _, r := range h.around(d, kind, at, at+1800) {
		for k, instant := range []int64{at, at + 1800} {
			if r.to == instant {
				marks[k], read[k] = r.value, true
			}
		}
	}
	same := h.fault == "registers never begin anew" || !slices.ContainsFunc(h.restarts[keptKey{d, kind}], func(reset int64) bool { return reset > at && reset <= at+1800 })
	return marks[1] - marks[0], read[0] && read[1] && same && marks[1] >= marks[0]
}

// one is what a device tells of the half-hour by one kind of reading.
func (h *home) one(d int, kind string, at int64, exporter int) wh {
	key := knownKey{d, kind, at, exporter}
	if e, done := h.known[key]; done {
		return e
	}
	e := h.look(d, kind, at, exporter)
	h.known[key] = e
	return e
}

func (h *home) look(d int, kind string, at int64, exporter int) wh {
	exact, known := new(big.Rat), false
	switch kind {
	case importRegister, chargerRegister:
		rise, whole := h.rise(d, kind, at)
		known = whole
		if kind == importRegister && exporter >= 0 {
			back, both := h.rise(exporter, exportRegister, at)
			rise, known = rise-back, known && both
		}

		exact.SetFrac64(rise, 1000)
	case provisional, chargerEnergy:
		for _, r := range h.around(d, kind, at, at+1800) {
			if r.from == at && r.to == at+1800 {
				exact.SetFrac64(r.value, 1000)
				known = true
			}
		}
	default:
		covered, until, clash := int64(0), int64(0), false
		rs := slices.Clone(h.around(d, kind, at, at+1800))
		sort.Slice(rs, func(i, k int) bool { return rs[i].from < rs[k].from })

		for _, r := range rs {
			from, to := max(r.from, at), min(r.to, at+1800)
			if to <= from {
				continue
			}
			clash = clash || from < until
			until, covered = to, covered+to-from
			exact.Add(exact, big.NewRat(r.value*(to-from), 3600*1000))
		}
		known = covered == 1800 && !clash
	}
	return wh{nearest(exact, false), known}
}

// meter is a place that is metered: the boundary (-1), or a device's own.
type meter int

func (h *home) limits(m meter) (in, out int64) {
	supply := (h.supply + 1) / 2
	if m < 0 || h.devices[m].power == 0 {
		return supply, supply
	}
	most := (h.devices[m].power + 1) / 2
	most += most / 10
	return min(most, supply), min(most, supply)
}

// within is what a device tells, if the meter can have measured it.
func (h *home) within(m meter, d int, kind string, at int64, exporter int) wh {
	in, out := h.limits(m)
	e := h.one(d, kind, at, exporter)
	e.known = e.known && e.e <= in && -e.e <= out
	return e
}

// group is events that are settled together.
type group struct {
	*home
	events      []*steered
	day         date
	first, last int
	slots       []int
	window      []int
	eventDays   map[date]bool
	shown       map[*steered]*stay
	usedThen    func(day date, n int) wh // what the devices used, for a nominated baseline at the boundary
}

func (h *home) groupOf(events []*steered) *group {
	g := &group{home: h, events: events, day: events[0].day, first: 99}
	for _, e := range events {
		g.first, g.last = min(g.first, e.first), max(g.last, e.last)
	}

	for n := g.first; n <= g.last; n++ {
		slot := g.day.usual(n)
		if h.fault == "the clocks never change" {
			slot = n
		}
		g.slots = append(g.slots, slot)
	}

	if w := g.slots[0] - 8; h.terms.inDay && h.terms.method != "nominated" && w >= 1 && g.day.halves() == 48 {
		for i := range 6 {
			g.window = append(g.window, w+i)
		}
	}
	return g
}

// exporterFor is the device whose exports are taken off a device's imports: its own, or the
// first that reads any at the time of the events, on their day or one of the 60 before it.
func (g *group) exporterFor(d int, kind string) int {
	if kind != importRegister {
		return -1
	}

	for _, from := range append([]int{d}, g.inOrder()...) {
		for back := range date(61) {
			day := g.day - back
			slots := append(slices.Clone(g.slots), g.window...)
			if back == 0 {
				slots = g.own()
			}

			for _, n := range slots {
				for _, r := range g.around(from, exportRegister, day.at(n), day.at(n)+1800) {
					if r.to == day.at(n) || r.to == day.at(n)+1800 {
						return from
					}
				}
			}
		}
	}
	return -1
}

func (g *group) inOrder() (all []int) {
	for d := range g.devices {
		all = append(all, d)
	}
	return all
}

func (g *group) own() (ns []int) {
	for n := g.first; n <= g.last; n++ {
		ns = append(ns, n)
	}
	return ns
}

// candidate is one kind of reading, by the devices in the order in which they count.
type candidate struct {
	kind  string
	at    func(day date, n int) wh
	known int
	days  []date
	full  string
}

func (g *group) candidate(m meter, kind string) candidate {
	type ranked struct {
		d, coverage, parts int
		history            []int
		at                 func(day date, n int) wh
	}
	devices := g.inOrder()
	if m >= 0 {
		devices = []int{int(m)}
	}

	var ranks []ranked
	for _, d := range devices {
		exporter := g.exporterFor(d, kind)
		r := ranked{d: d, at: func(day date, n int) wh { return g.within(m, d, kind, day.at(n), exporter) }}
		for _, n := range g.own() {
			if r.at(g.day, n).known {
				r.coverage++
			}
		}

		for back := date(1); back <= 60; back++ {
			n := 0
			for _, slot := range append(slices.Clone(g.slots), g.window...) {
				if slot <= (g.day-back).halves() && r.at(g.day-back, slot).known {
					n++
				}
			}
			r.history = append(r.history, n)
			r.coverage += n
		}

		from, to := g.day.at(g.first), g.day.at(g.last+1)
		for _, x := range g.around(d, kind, from, to) {
			switch kind {
			case importRegister, chargerRegister:
				if x.to >= from && x.to < to {
					r.parts++
				}

			default:
				if x.from < to && x.to > from {
					r.parts++
				}
			}
		}

		ranks = append(ranks, r)
	}

	sort.SliceStable(ranks, func(i, k int) bool {
		a, b := ranks[i], ranks[k]
		switch {
		case a.coverage != b.coverage:
			return a.coverage > b.coverage
		case a.parts != b.parts:
			return a.parts > b.parts
		}
		return slices.Compare(a.history, b.history) > 0
	})

	var current []func(day date, n int) wh
	first := func(day date, n int) wh {
		for _, at := range current {
			if e := at(day, n); e.known {
				return e
			}
		}
		return wh{}
	}

	for _, r := range ranks {
		if g.fault == "a device counts that measures something else" || g.alike(first, r.at) {
			current = append(current, r.at)
		}
	}
	c := candidate{kind: kind, at: first}
	for _, n := range g.own() {
		if c.at(g.day, n).known {
			c.known++
		}
	}
	return c
}

// alike is whether what two devices tell of the events' half-hours and of these of the 60 days before differs by
// a tenth of it, or by 50 Wh a half-hour, at most.
func (g *group) alike(one, other func(day date, n int) wh) bool {
	var differ, sum, halves int64
	for back := range date(61) {
		slots := append(slices.Clone(g.slots), g.window...)
		if back == 0 {
			slots = g.own()
		}

		for _, n := range slots {
			if n > (g.day - back).halves() {
				continue
			}
			if a, b := one(g.day-back, n), other(g.day-back, n); a.known && b.known {
				differ, sum, halves = differ+max(a.e-b.e, b.e-a.e), sum+max(a.e, -a.e), halves+1
			}
		}
	}
	return differ*10 <= sum || differ <= 50*halves
}

// compare finds the days that a kind of reading can be compared with.
func (g *group) compare(m meter, c *candidate) {
	if g.terms.method == "nominated" && m >= 0 {
		c.full = "full"
		return
	}
	want, least := 4, 2
	if g.day.working() {
		want, least = 10, 5
	}
	at := g.past(c)
	if g.fault == "days of events count" {
		g.eventDays = nil
	}

	for back := date(1); back <= 60 && len(c.days) < want; back++ {
		day := g.day - back
		whole := day.working() == g.day.working() && !g.eventDays[day] && day.halves() == 48
		for _, n := range append(slices.Clone(g.slots), g.window...) {
			whole = whole && at(day, n).known
		}
		if whole {
			c.days = append(c.days, day)
		}
	}

	switch {
	case len(c.days) >= want:
		c.full = "full"
	case len(c.days) >= least:
		c.full = "partial"
	}
	if g.terms.method == "mid_8_of_10" && len(c.days) >= 10 {
		c.days = g.middle(c)
	}
}

// past is what a kind of reading tells of a day before: with a nominated baseline, less what
// the devices used.
func (g *group) past(c *candidate) func(day date, n int) wh {
	if g.usedThen == nil {
		return c.at
	}
	return func(day date, n int) wh {
		all, used := c.at(day, n), g.usedThen(day, n)
		return wh{all.e - used.e, all.known && used.known}
	}
}

// middle leaves out the day of the highest and that of the lowest use.
func (g *group) middle(c *candidate) (kept []date) {
	high, low, use := 0, 0, make([]int64, len(c.days))
	for i, day := range c.days {
		for _, n := range g.slots {
			use[i] += c.at(day, n).e
		}
		if use[i] > use[high] {
			high = i
		}
		if use[i] < use[low] {
			low = i
		}
	}

	if high == low {
		low = 1
	}

	for i, day := range c.days {
		if i != high && i != low {
			kept = append(kept, day)
		}
	}
	return kept
}

// baseline is what the events' half-hours would have used, or nothing.
func (g *group) baseline(m meter, c *candidate) []int64 {
	var base []int64
	if g.terms.method == "nominated" && m >= 0 {
		base = make([]int64, len(g.slots))
	} else {
		if len(c.days) == 0 {
			return nil
		}
		past := g.past(c)
		even := g.terms.even

		for _, n := range g.slots {
			total := new(big.Rat)
			for _, day := range c.days {
				total.Add(total, big.NewRat(past(day, n).e, int64(len(c.days))))
			}
			base = append(base, nearest(total, even))
		}

		if more, adjusted := g.adjustment(c); adjusted {
			for i := range base {
				base[i] += more
			}
		}
	}

	if g.terms.method == "nominated" {
		for i, n := range g.own() {
			base[i] += g.nominatedIn(n)
		}
	}
	return base
}

func (g *group) adjustment(c *candidate) (int64, bool) {
	if len(g.window) == 0 {
		return 0, false
	}

	total := new(big.Rat)
	for _, n := range g.window {
		today := c.at(g.day, n)
		if !today.known {
			return 0, false
		}
		total.Add(total, big.NewRat(today.e, 6))
		for _, day := range c.days {
			total.Sub(total, big.NewRat(c.at(day, n).e, int64(6*len(c.days))))
		}
	}

	more := nearest(total, g.terms.even)
	if g.terms.cap > 0 {
		more = min(max(more, -g.terms.cap), g.terms.cap)
	}
	return more, true
}

// settle settles the group at a meter; nil if the meter tells of none of its half-hours.
func (g *group) settle(m meter, apart map[int]wh) []*sum {
	kinds := boundaryKinds
	if m >= 0 {
		kinds = ownKinds
	}
	var best *candidate
	rank := func(c *candidate) [3]int {
		if c.full == "" {
			return [3]int{0, c.known, 0}
		}
		return [3]int{1, c.known, 1 + len(c.days)}
	}

	for _, kind := range kinds {
		c := g.candidate(m, kind)
		if c.known == 0 {
			continue
		}
		g.compare(m, &c)
		if best == nil || slices.Compare(slice(rank(&c)), slice(rank(best))) > 0 {
			best = &c
		}
	}

	if best == nil {
		return nil
	}
	return g.divide(m, best, g.baseline(m, best), apart)
}

func slice(a [3]int) []int { return a[:] }

// divide gives each event its part of each half-hour, and its money.
func (g *group) divide(m meter, c *candidate, base []int64, apart map[int]wh) (sums []*sum) {
	for _, e := range g.events {
		sums = append(sums, &sum{steered: e, own: m >= 0, kind: c.kind, quality: c.full})
	}
	exact := make([]*big.Rat, len(sums))
	for i := range exact {
		exact[i] = new(big.Rat)
	}

	for i, n := range g.own() {
		p := part{n: n, compared: base != nil}
		metered := c.at(g.day, n)
		p.metered, p.read = metered.e, metered.known
		if base != nil {
			p.baseline = base[i]
		}

		_, priced := g.prices[g.day.at(n)]
		p.known = p.read && priced
		if a, there := apart[n]; there {
			p.known = p.known && a.known
			p.rest = a.e
		}
		parts := make([]int64, len(sums))
		if p.known && p.compared {
			p.deviation = p.metered - p.baseline - p.rest
			parts, p.unassigned = g.split(n, p.deviation)
		}

		for k, s := range sums {
			if n >= s.first && n <= s.last && g.left(s.steered) { // its part is nobody's
				p.unassigned += parts[k]
			}
		}

		for k, s := range sums {
			if n < s.first || n > s.last {
				continue
			}
			if g.fault == "each event has all of it" {
				parts[k] = p.deviation
			}

			mine := p
			mine.flex = parts[k]
			s.parts = append(s.parts, mine)
			s.flex += parts[k]
			if !p.known {
				s.missing++
			}
			exact[k].Sub(exact[k], new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(parts[k]), big.NewInt(g.price(s.steered, n))), big.NewInt(10_000_000_000)))
		}
	}

	g.money(sums, exact)
	return sums
}

// price is what a half-hour of an event is worth: the market's price, or what instructions pay for the seconds in which they
// called its device.
func (g *group) price(e *steered, n int) int64 {
	from, left := g.day.at(n), int64(1800)
	total := new(big.Rat)
	for _, p := range e.paid {
		seconds := max(0, min(p.to, from+1800)-max(p.from, from))
		total.Add(total, big.NewRat(seconds*p.price, 1800))
		left -= seconds
	}
	if g.fault == "the market pays for all" {
		left, total = 1800, new(big.Rat)
	}
	return nearest(total.Add(total, big.NewRat(left*g.prices[from], 1800)), false)
}

// split divides a deviation among the events of a half-hour.
func (g *group) split(n int, deviation int64) (parts []int64, unassigned int64) {
	parts = make([]int64, len(g.events))
	var in []int
	var weights, along []int64
	any := false

	for i, e := range g.events {
		if n < e.first || n > e.last {
			continue
		}
		meant := g.bound(e, n, g.until(e, n))
		in, weights = append(in, i), append(weights, max(meant, -meant))
		if meant > 0 && deviation > 0 || meant < 0 && deviation < 0 {
			along, any = append(along, max(meant, -meant)), true
		} else {
			along = append(along, 0)
		}
	}

	if any {
		weights = along
	}
	total := int64(0)
	for _, w := range weights {
		total += w
	}

	if total == 0 {
		for i := range weights {
			weights[i], total = 1, total+1
		}
	}

	size := max(deviation, -deviation)
	left := size
	order := make([]int, len(in))
	for k, w := range weights {
		order[k] = k
		parts[in[k]] = size * w / total
		left -= parts[in[k]]
	}

	sort.SliceStable(order, func(a, b int) bool { return size*weights[order[a]]%total > size*weights[order[b]]%total })
	for _, k := range order[:left] {
		parts[in[k]]++
	}

	unassigned = deviation
	for _, i := range in {
		if deviation < 0 {
			parts[i] = -parts[i]
		}
		parts[i] = g.bound(g.events[i], n, parts[i])
		unassigned -= parts[i]
	}
	return parts, unassigned
}

// left reports whether an event's device was taken away before it was over.
func (h *home) left(e *steered) bool {
	gone := h.devices[e.device].gone
	return gone > 0 && gone < e.day.at(e.last+1)
}

// until is what an event was to move in a half-hour until its device was taken away.
func (h *home) until(e *steered, n int) int64 {
	meant := e.meant[n-e.first]
	if !h.left(e) || h.fault == "what left counts to the end" {
		return meant
	}
	return meant * min(max(h.devices[e.device].gone-e.day.at(n), 0), 1800) / 1800
}

// bound keeps a part within what the event's asset can have moved.
func (g *group) bound(e *steered, n int, moved int64) int64 {
	power := g.devices[e.device].power
	if power == 0 {
		power = 7400
	}

	most := (power + 1) / 2
	if g.devices[e.device].battery {
		most *= 2
	}
	for _, w := range e.meant {
		most = max(most, w, -w)
	}

	if s := g.shown[e]; s != nil {
		i := int(g.day.at(n)-s.from) / 1800
		if g.day.at(n) < s.from || i >= len(s.shown) {
			return 0
		}
		could := max(0, min((power+1)/2, s.drawn)-s.shown[i])
		moved = min(max(moved, -s.shown[i]), could)
	}

	return min(max(moved, -most), most)
}

// money turns exact pence into whole ones. Events settled together are rounded together.
func (g *group) money(sums []*sum, exact []*big.Rat) {
	t := g.terms
	early := t.early
	if g.final {
		early = big.NewRat(1, 1)
	}

	before := new(big.Rat)
	for k, s := range sums { // in the order of ids
		after := new(big.Rat).Add(before, exact[k])
		pence := func(of ...*big.Rat) int64 {
			a, b := new(big.Rat).Set(after), new(big.Rat).Set(before)
			for _, f := range of {
				a.Mul(a, f)
				b.Mul(b, f)
			}
			return nearest(a, t.even) - nearest(b, t.even)
		}

		if s.quality != "" {
			share := t.share
			if g.fault == "a wrong share" {
				share = new(big.Rat).Mul(share, big.NewRat(11, 10))
			}

			s.credit, s.owed, s.gross = pence(t.loss, share, early), pence(t.loss, share), pence(t.loss)
			switch {
			case t.claw:
			case t.byEvent:
				s.credit, s.owed = max(0, s.credit), max(0, s.owed)
			default:
				s.credit = min(s.credit, s.owed)
			}
		}

		if g.left(s.steered) {
			s.credit, s.owed = 0, 0
		}
		before = after
	}
}
