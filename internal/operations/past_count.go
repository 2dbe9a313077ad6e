package operations

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// tally counts some half-hours of a fleet, as a whole and by group. They follow each other within one
// London day, so that a half-hour is a bit of a word.
type tally struct {
	span    flex.Span
	first   flex.Period
	slots   int
	columns map[store.FleetGroup]*column
	kin     map[[3]string][]*column
	of      map[flex.AssetID][]*column
	// the half-hours in which a car was plugged in throughout
	present map[flex.AssetID]uint64

	prices    map[flex.Period]flex.Price
	chargers  []flex.AssetID
	batteries []flex.AssetID
	heaters   []flex.AssetID
	session   openPlan
}

// column is the half-hours of a group.
type column struct {
	hours   []store.FleetHalfHour
	planned []int64 // watt-seconds
	unmoved []int64
	ordered []int64 // of batteries
}

// openPlan is the session whose schedules are being read.
type openPlan struct {
	store.SessionPlan
	versions []planVersion
}

// planVersion is a schedule of a session.
type planVersion struct {
	power flex.Watts
	steps []flex.Step
}

func newTally(span flex.Span, fleetCap *flex.Watts) *tally {
	t := &tally{
		span:    span,
		first:   flex.PeriodAt(span.From),
		slots:   int(span.Len() / flex.HalfHour),
		columns: map[store.FleetGroup]*column{},
		kin:     map[[3]string][]*column{},
		of:      map[flex.AssetID][]*column{},
		present: map[flex.AssetID]uint64{},
	}

	whole := t.column(store.FleetGroup{})
	for i := range whole.hours {
		whole.hours[i].Cap = fleetCap
	}

	return t
}

// begin forgets what was counted of plans and of when cars were plugged in.
func (t *tally) begin() {
	t.session = openPlan{}
	clear(t.present)
	for _, c := range t.columns {
		clear(c.planned)
		clear(c.unmoved)
		clear(c.ordered)

		for i := range c.hours {
			h := &c.hours[i]
			h.Plugged = 0
			h.Wanted = 0
			h.HeatPlanned = 0
			h.Earned = 0
			h.Saved = 0
			h.Unpriced = 0
		}
	}
}

// column is a group's, made if it is not there.
func (t *tally) column(g store.FleetGroup) *column {
	c := t.columns[g]
	if c != nil {
		return c
	}

	c = &column{
		hours:   make([]store.FleetHalfHour, t.slots),
		planned: make([]int64, t.slots),
		unmoved: make([]int64, t.slots),
		ordered: make([]int64, t.slots),
	}

	for i := range c.hours {
		c.hours[i].FleetGroup = g
		c.hours[i].At = t.first.Add(i).Start()
	}

	t.columns[g] = c

	return c
}

// columnsOf are the columns that assets with some values count in.
func (t *tally) columnsOf(values [3]string) []*column {
	found := t.kin[values]
	if found != nil {
		return found
	}

	found = []*column{t.column(store.FleetGroup{})}
	for i, attribute := range store.FleetAttributes {
		found = append(found, t.column(store.FleetGroup{
			Attribute: attribute,
			Name:      values[i],
		}))
	}

	t.kin[values] = found

	return found
}

// asset notes which groups an asset is in.
func (t *tally) asset(a *store.GroupedAsset) {
	t.of[a.ID] = t.columnsOf(a.Values)

	if a.Type.Charges() {
		t.chargers = append(t.chargers, a.ID)
	} else if a.Type == flex.Battery {
		t.batteries = append(t.batteries, a.ID)
	} else if a.Type.Heats() {
		t.heaters = append(t.heaters, a.ID)
	}
}

// groups are the columns of an asset; one that was taken away counts among those of which nothing is known.
func (t *tally) groups(id flex.AssetID) []*column {
	if found := t.of[id]; found != nil {
		return found
	}

	return t.columnsOf([3]string{})
}

// plan takes in a schedule. Those of a session follow each other.
func (t *tally) plan(p *store.SessionPlan) {
	if p.Session != t.session.Session {
		t.endSession()
		t.session = openPlan{SessionPlan: *p}
		t.session.Steps = nil
	}

	if len(p.Steps) > 0 {
		t.session.versions = append(
			t.session.versions,
			planVersion{p.Power, slices.Clone(p.Steps)},
		)
	}
}

// endSession counts the session whose schedules were read.
func (t *tally) endSession() {
	s := &t.session
	if s.From.IsZero() {
		return
	}

	out := s.To
	if out.IsZero() {
		out = time.Unix(1<<40, 0)
	}

	stay := flex.Span{From: s.From, To: out}
	into := t.groups(s.Asset)
	t.presence(s.Asset, into, stay)

	var total int64 // watt-seconds
	t.inForce(stay, func(part flex.Span, power flex.Watts) {
		total += int64(power) * int64(part.Len()/time.Second)
		t.spread(part, power, func(slot int, energy int64) {
			for _, c := range into {
				c.planned[slot] += energy
			}
		})
	})

	at := flex.Span{From: stay.From, To: stay.From.Add(t.takes(total))}
	at = at.Meet(stay)
	t.atOnce(into, at)
	if t.span.Contains(stay.From) {
		t.save(into, stay, at)
	}

	*s = openPlan{}
}

// inForce calls fn with each time of a stay and the power of the schedule that was in force then.
func (t *tally) inForce(
	stay flex.Span,
	fn func(part flex.Span, power flex.Watts),
) {
	versions := t.session.versions
	for i, v := range versions {
		valid := stay
		if i+1 < len(versions) {
			valid.To = versions[i+1].steps[0].From
			valid = valid.Meet(stay)
		}

		for _, step := range v.steps {
			fn(step.Span.Meet(valid), min(step.Limit, v.power))
		}
	}
}

// takes is how long the session's energy would have taken at full power.
func (t *tally) takes(total int64) time.Duration {
	if total == 0 {
		return 0
	}

	return time.Duration(total/int64(t.power())) * time.Second
}

// power is what the session's asset draws at most, by its newest schedule.
func (t *tally) power() flex.Watts {
	return t.session.versions[len(t.session.versions)-1].power
}

// atOnce counts what a session would have drawn at full power from the plug-in on.
func (t *tally) atOnce(into []*column, at flex.Span) {
	if at.Empty() {
		return
	}

	t.spread(at, t.power(), func(slot int, energy int64) {
		for _, c := range into {
			c.unmoved[slot] += energy
		}
	})
}

// presence counts in which half-hours a car was plugged in, and in which throughout.
func (t *tally) presence(id flex.AssetID, into []*column, stay flex.Span) {
	for i := range t.slots {
		p := t.first.Add(i)
		if p.Span().Meet(stay).Empty() {
			continue
		}

		throughout := !p.Start().Before(stay.From) && !p.End().After(stay.To)
		if throughout {
			t.present[id] |= 1 << i
		}

		for _, c := range into {
			c.hours[i].Plugged++
			if throughout {
				c.hours[i].Wanted++
			}
		}
	}
}

// spread calls add with the watt-seconds of a power in each half-hour that its time touches.
func (t *tally) spread(
	during flex.Span,
	power flex.Watts,
	add func(slot int, energy int64),
) {
	eachPeriod(during.Meet(t.span), func(p flex.Period, seconds int64) {
		add(p.Sub(t.first), int64(power)*seconds)
	})
}

// eachPeriod calls fn with the half-hours that a span touches, and how many seconds of each.
func eachPeriod(span flex.Span, fn func(p flex.Period, seconds int64)) {
	for at := span.From; at.Before(span.To); {
		p := flex.PeriodAt(at)
		next := span.To
		if p.End().Before(next) {
			next = p.End()
		}

		fn(p, int64(next.Sub(at)/time.Second))
		at = next
	}
}

// save counts what a session's schedules cost less than its energy at full power at once, in the half-hour
// of its plug-in.
func (t *tally) save(into []*column, stay, at flex.Span) {
	moved := map[flex.Period]int64{} // watt-seconds by which charging at once draws more
	t.inForce(stay, func(part flex.Span, power flex.Watts) {
		eachPeriod(part, func(p flex.Period, seconds int64) {
			moved[p] -= int64(power) * seconds
		})
	})

	eachPeriod(at, func(p flex.Period, seconds int64) {
		moved[p] += int64(t.power()) * seconds
	})

	saved, unpriced := t.worth(moved)
	slot := flex.PeriodAt(stay.From).Sub(t.first)
	for _, c := range into {
		h := &c.hours[slot]
		if unpriced {
			h.Unpriced++
			continue
		}

		h.Saved += saved
	}
}

// worth is what energy costs at market prices, unless a price of it is missing.
func (t *tally) worth(energy map[flex.Period]int64) (worth flex.MicroPounds, unpriced bool) {
	const hour, megawatt = 3600, 1_000_000
	var sum int64
	for p, wattSeconds := range energy {
		price, known := t.prices[p]
		if !known && wattSeconds != 0 {
			return 0, true
		}

		sum += int64(price) * wattSeconds / hour
	}

	return flex.MicroPounds(sum / megawatt), false
}

// metersOf are the assets whose meters are counted together.
type metersOf int

const (
	ofChargers metersOf = iota
	ofBatteries
	ofHeaters
)

// labels are those of the readings that such meters give.
func (m metersOf) labels() []flex.Label {
	if m == ofHeaters {
		return []flex.Label{flex.HeatPower}
	}

	return settle.Labels(settle.Asset)
}

// readings counts what the meters of assets counted.
func (t *tally) readings(rs []flex.Reading, of metersOf) {
	by := map[flex.AssetID][]flex.Reading{}
	metering := settle.Asset
	if of == ofHeaters {
		metering = settle.Boundary
	}

	for _, r := range rs {
		if of == ofHeaters {
			r.Label = flex.BoundaryImportPower // powers make energies alike, whatever they are of
		}
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	for id, own := range by {
		for _, day := range settle.HalfHours(metering, own) {
			t.metered(id, &day, of)
		}
	}
}

func (t *tally) metered(id flex.AssetID, day *settle.MeteredDay, of metersOf) {
	for n := range day.Wh {
		energy, known := day.At(n + 1)
		slot := day.Day.Period(n + 1).Sub(t.first)
		if !known || slot < 0 || slot >= t.slots {
			continue
		}

		for _, c := range t.groups(id) {
			h := &c.hours[slot]
			switch of {
			case ofBatteries:
				h.BatteryMetered += energy
			case ofHeaters:
				h.HeatMetered += energy

			default:
				h.Metered += energy
				h.Known += int(t.present[id] >> slot & 1)
			}
		}
	}
}

// heater counts what a tank or a heat pump was to draw in a half-hour by its plan.
func (t *tally) heater(id flex.AssetID, p flex.Period, h store.HeatHalfHour) {
	slot := p.Sub(t.first)
	if slot < 0 || slot >= t.slots {
		return
	}

	for _, c := range t.groups(id) {
		c.hours[slot].HeatPlanned += h.Expected
	}
}

// order counts what a dispatch asked for.
func (t *tally) order(o *store.BatteryOrder) {
	into := t.groups(o.Asset)
	t.spread(o.Span, o.Power, func(slot int, energy int64) {
		for _, c := range into {
			c.ordered[slot] += energy
		}
	})
}

// earning counts what a flex event brought in.
func (t *tally) earning(e *store.Earning) {
	slot := flex.PeriodAt(e.At).Sub(t.first)
	for _, c := range t.groups(e.Asset) {
		c.hours[slot].Earned += e.Amount
	}
}

// halfHours are those of all groups, as they are kept.
func (t *tally) halfHours() []store.FleetHalfHour {
	const hour = int64(time.Hour / time.Second)
	var hs []store.FleetHalfHour
	for _, c := range t.columns {
		for i := range c.hours {
			h := &c.hours[i]
			h.Planned = flex.WattHours(c.planned[i] / hour)
			h.Unmoved = flex.WattHours(c.unmoved[i] / hour)
			h.BatteryPlanned = flex.WattHours(c.ordered[i] / hour)
		}

		hs = append(hs, c.hours...)
	}

	return hs
}
