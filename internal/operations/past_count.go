package operations

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// fleetCounter adds up consecutive half-hours of a fleet, as a whole and by group. They are
// within one London day, so that a half-hour is a bit of a word.
type fleetCounter struct {
	span     flex.Span
	first    flex.Period
	slots    int
	groups   map[store.FleetGroup]*groupCounts
	byValues map[[3]string][]*groupCounts
	byAsset  map[flex.AssetID][]*groupCounts
	// the half-hours in which a car was plugged in throughout
	present map[flex.AssetID]uint64

	prices    map[flex.Period]flex.Price
	chargers  []flex.AssetID
	batteries []flex.AssetID
	heaters   []flex.AssetID
	session   openPlan
}

// groupCounts has the half-hours of a group.
type groupCounts struct {
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

func newFleetCounter(span flex.Span, fleetCap *flex.Watts) *fleetCounter {
	f := &fleetCounter{
		span:     span,
		first:    flex.PeriodAt(span.From),
		slots:    int(span.Len() / flex.HalfHour),
		groups:   map[store.FleetGroup]*groupCounts{},
		byValues: map[[3]string][]*groupCounts{},
		byAsset:  map[flex.AssetID][]*groupCounts{},
		present:  map[flex.AssetID]uint64{},
	}

	whole := f.group(store.FleetGroup{})
	for i := range whole.hours {
		whole.hours[i].Cap = fleetCap
	}

	return f
}

// reset clears the counts of plans and of when cars were plugged in.
func (f *fleetCounter) reset() {
	f.session = openPlan{}
	clear(f.present)
	for _, c := range f.groups {
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

// group returns the counts of a group, and makes them if there are none.
func (f *fleetCounter) group(g store.FleetGroup) *groupCounts {
	c := f.groups[g]
	if c != nil {
		return c
	}

	c = &groupCounts{
		hours:   make([]store.FleetHalfHour, f.slots),
		planned: make([]int64, f.slots),
		unmoved: make([]int64, f.slots),
		ordered: make([]int64, f.slots),
	}

	for i := range c.hours {
		c.hours[i].FleetGroup = g
		c.hours[i].At = f.first.Add(i).Start()
	}

	f.groups[g] = c

	return c
}

// groupsOf returns the groups in which assets with these values of store.FleetAttributes are
// counted.
func (f *fleetCounter) groupsOf(values [3]string) []*groupCounts {
	found := f.byValues[values]
	if found != nil {
		return found
	}

	found = []*groupCounts{f.group(store.FleetGroup{})}
	for i, attribute := range store.FleetAttributes {
		found = append(found, f.group(store.FleetGroup{
			Attribute: attribute,
			Name:      values[i],
		}))
	}

	f.byValues[values] = found

	return found
}

// addAsset records the groups of an asset.
func (f *fleetCounter) addAsset(a *store.GroupedAsset) {
	f.byAsset[a.ID] = f.groupsOf(a.Values)

	if a.Type.Charges() {
		f.chargers = append(f.chargers, a.ID)
	} else if a.Type == flex.Battery {
		f.batteries = append(f.batteries, a.ID)
	} else if a.Type.Heats() {
		f.heaters = append(f.heaters, a.ID)
	}
}

// groupsWith returns the groups of an asset. A deleted asset is in the groups of assets
// without values.
func (f *fleetCounter) groupsWith(id flex.AssetID) []*groupCounts {
	if found := f.byAsset[id]; found != nil {
		return found
	}

	return f.groupsOf([3]string{})
}

// addPlan adds a schedule. The schedules of a session are added one after the other.
func (f *fleetCounter) addPlan(p *store.SessionPlan) {
	if p.Session != f.session.Session {
		f.endSession()
		f.session = openPlan{SessionPlan: *p}
		f.session.Steps = nil
	}

	if len(p.Steps) > 0 {
		f.session.versions = append(
			f.session.versions,
			planVersion{p.Power, slices.Clone(p.Steps)},
		)
	}
}

// endSession counts the session whose schedules were added.
func (f *fleetCounter) endSession() {
	s := &f.session
	if s.From.IsZero() {
		return
	}

	out := s.To
	if out.IsZero() {
		out = time.Unix(1<<40, 0)
	}

	plugged := flex.Span{From: s.From, To: out}
	into := f.groupsWith(s.Asset)
	f.countPlugged(s.Asset, into, plugged)

	var total int64 // watt-seconds
	f.inForce(plugged, func(part flex.Span, power flex.Watts) {
		total += int64(power) * int64(part.Len()/time.Second)
		f.spread(part, power, func(slot int, energy int64) {
			for _, c := range into {
				c.planned[slot] += energy
			}
		})
	})

	at := flex.Span{From: plugged.From, To: plugged.From.Add(f.fullPowerTime(total))}
	at = at.Meet(plugged)
	f.addUnmoved(into, at)
	if f.span.Contains(plugged.From) {
		f.addSaving(into, plugged, at)
	}

	*s = openPlan{}
}

// inForce calls fn with each span of the time plugged in and the power of the schedule that
// was in force then.
func (f *fleetCounter) inForce(
	plugged flex.Span,
	fn func(part flex.Span, power flex.Watts),
) {
	versions := f.session.versions
	for i, v := range versions {
		valid := plugged
		if i+1 < len(versions) {
			valid.To = versions[i+1].steps[0].From
			valid = valid.Meet(plugged)
		}

		for _, step := range v.steps {
			fn(step.Span.Meet(valid), min(step.Limit, v.power))
		}
	}
}

// fullPowerTime is how long the session's energy would have taken at full power.
func (f *fleetCounter) fullPowerTime(total int64) time.Duration {
	if total == 0 {
		return 0
	}

	return time.Duration(total/int64(f.power())) * time.Second
}

// power is the most that the session's asset draws, by its newest schedule.
func (f *fleetCounter) power() flex.Watts {
	return f.session.versions[len(f.session.versions)-1].power
}

// addUnmoved adds what a session would have drawn at full power from the plug-in on.
func (f *fleetCounter) addUnmoved(into []*groupCounts, at flex.Span) {
	if at.Empty() {
		return
	}

	f.spread(at, f.power(), func(slot int, energy int64) {
		for _, c := range into {
			c.unmoved[slot] += energy
		}
	})
}

// countPlugged counts the half-hours in which a car was plugged in, and those in which it was
// throughout.
func (f *fleetCounter) countPlugged(id flex.AssetID, into []*groupCounts, plugged flex.Span) {
	for i := range f.slots {
		p := f.first.Add(i)
		if p.Span().Meet(plugged).Empty() {
			continue
		}

		throughout := !p.Start().Before(plugged.From) && !p.End().After(plugged.To)
		if throughout {
			f.present[id] |= 1 << i
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
func (f *fleetCounter) spread(
	during flex.Span,
	power flex.Watts,
	add func(slot int, energy int64),
) {
	eachPeriod(during.Meet(f.span), func(p flex.Period, seconds int64) {
		add(p.Sub(f.first), int64(power)*seconds)
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

// addSaving adds the saving of a session's schedules, compared with charging the same energy
// at full power from the plug-in on. It counts in the half-hour of the plug-in.
func (f *fleetCounter) addSaving(into []*groupCounts, plugged, at flex.Span) {
	moved := map[flex.Period]int64{} // watt-seconds by which charging at once draws more
	f.inForce(plugged, func(part flex.Span, power flex.Watts) {
		eachPeriod(part, func(p flex.Period, seconds int64) {
			moved[p] -= int64(power) * seconds
		})
	})

	eachPeriod(at, func(p flex.Period, seconds int64) {
		moved[p] += int64(f.power()) * seconds
	})

	saved, unpriced := f.worth(moved)
	slot := flex.PeriodAt(plugged.From).Sub(f.first)
	for _, c := range into {
		h := &c.hours[slot]
		if unpriced {
			h.Unpriced++
			continue
		}

		h.Saved += saved
	}
}

// worth is the cost of the energy (Ws by half-hour) at market prices; unpriced if one of the
// prices is missing.
func (f *fleetCounter) worth(energy map[flex.Period]int64) (worth flex.MicroPounds, unpriced bool) {
	const hour, megawatt = 3600, 1_000_000
	var sum int64
	for p, wattSeconds := range energy {
		price, known := f.prices[p]
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

// addReadings adds the energy that the assets' meters measured.
func (f *fleetCounter) addReadings(rs []flex.Reading, of metersOf) {
	by := map[flex.AssetID][]flex.Reading{}
	metering := settle.Asset
	if of == ofHeaters {
		metering = settle.Boundary
	}

	for _, r := range rs {
		if of == ofHeaters {
			r.Label = flex.BoundaryImportPower // energy is computed from every power in the same way
		}
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	for id, own := range by {
		for _, day := range settle.HalfHours(metering, own) {
			f.addMetered(id, &day, of)
		}
	}
}

// addMetered adds the metered half-hours of one asset's day.
func (f *fleetCounter) addMetered(id flex.AssetID, day *settle.MeteredDay, of metersOf) {
	for n := range day.Wh {
		energy, known := day.At(n + 1)
		slot := day.Day.Period(n + 1).Sub(f.first)
		if !known || slot < 0 || slot >= f.slots {
			continue
		}

		for _, c := range f.groupsWith(id) {
			h := &c.hours[slot]
			switch of {
			case ofBatteries:
				h.BatteryMetered += energy
			case ofHeaters:
				h.HeatMetered += energy

			default:
				h.Metered += energy
				h.Known += int(f.present[id] >> slot & 1)
			}
		}
	}
}

// addHeatPlan adds what a tank or a heat pump was to draw in a half-hour by its plan.
func (f *fleetCounter) addHeatPlan(id flex.AssetID, p flex.Period, h store.HeatHalfHour) {
	slot := p.Sub(f.first)
	if slot < 0 || slot >= f.slots {
		return
	}

	for _, c := range f.groupsWith(id) {
		c.hours[slot].HeatPlanned += h.Expected
	}
}

// addDispatch adds the energy that a dispatch asked for.
func (f *fleetCounter) addDispatch(o *store.BatteryOrder) {
	into := f.groupsWith(o.Asset)
	f.spread(o.Span, o.Power, func(slot int, energy int64) {
		for _, c := range into {
			c.ordered[slot] += energy
		}
	})
}

// addEarning adds what a flex event earned.
func (f *fleetCounter) addEarning(e *store.Earning) {
	slot := flex.PeriodAt(e.At).Sub(f.first)
	for _, c := range f.groupsWith(e.Asset) {
		c.hours[slot].Earned += e.Amount
	}
}

// halfHours returns the half-hours of all groups, as they are stored.
func (f *fleetCounter) halfHours() []store.FleetHalfHour {
	const hour = int64(time.Hour / time.Second)
	var hs []store.FleetHalfHour
	for _, c := range f.groups {
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
