package settle

import (
	"slices"

	"flexd/internal/flex"
)

// claims lists the events settled together, the case's own among them, in the order of
// their ids.
func (c *Case) claims() []EventPart {
	own := EventPart{
		Event:  c.Event,
		First:  c.First,
		Last:   c.Last,
		Meant:  c.Meant,
		Most:   c.Most,
		Bounds: c.Bounds,

		Instructed: c.Instructed,
	}

	if len(c.Others) == 0 {
		return []EventPart{own}
	}
	all := append(slices.Clone(c.Others), own)
	slices.SortFunc(all, func(a, b EventPart) int {
		return compareID(a.Event, b.Event)
	})

	return all
}

// span returns the first and the last settlement period of the events settled together.
func (c *Case) span() (first, last int) {
	first, last = c.First, c.Last
	for _, e := range c.Others {
		first, last = min(first, e.First), max(last, e.Last)
	}

	return first, last
}

// own returns the settlement periods of the events settled together.
func (c *Case) own() []int { return between(c.span()) }

// intended returns the energy that the event was to move in a settlement period.
func (e *EventPart) intended(n int) flex.WattHours {
	if i := n - e.First; i >= 0 && i < len(e.Meant) {
		return e.Meant[i]
	}
	return 0
}

// bound limits an energy to what the event's asset can have moved in a settlement period.
func (e *EventPart) bound(n int, energy flex.WattHours) flex.WattHours {
	if i := n - e.First; i >= 0 && i < len(e.Bounds) {
		energy = min(max(energy, e.Bounds[i].Least), e.Bounds[i].Most)
	}

	// A meter may read up to a tenth more than the rated power, and so may a supported plan.
	if e.Most > 0 {
		return min(max(energy, -e.Most), e.Most)
	}

	return energy
}

// shareBetween divides a meter's deviation in a settlement period among its events. It returns
// the parts, and the remainder that belongs to no event.
//
// The deviation goes to the events that intended that direction, in proportion to the intended
// energy. If there is none, it goes to all events of the period in the same proportion. So no
// event gains from what another event reversed. A part beyond what an event's asset can have
// moved belongs to no event.
func shareBetween(
	claims []EventPart,
	n int,
	deviation flex.WattHours,
) ([]flex.WattHours, flex.WattHours) {
	parts := make([]flex.WattHours, len(claims))
	var toward, all []int64
	var claimIndexes []int // indexes of the claims in the period
	hasToward := false

	for i := range claims {
		e := &claims[i]
		if n < e.First || n > e.Last {
			continue
		}

		intended := int64(e.bound(n, e.intended(n)))
		weight := max(intended, -intended)
		towardWeight := int64(0)

		if intended != 0 && deviation != 0 && (intended > 0) == (deviation > 0) {
			towardWeight, hasToward = weight, true
		}

		claimIndexes = append(claimIndexes, i)
		toward, all = append(toward, towardWeight), append(all, weight)
	}

	if !hasToward {
		toward = all
	}

	unassigned := deviation
	for k, part := range Split(deviation, toward) {
		part = claims[claimIndexes[k]].bound(n, part)
		unassigned -= part
		parts[claimIndexes[k]] = part
	}

	return parts, unassigned
}

// MostMoved returns the most that an asset of the power can have moved in a half-hour. An
// asset that also discharges can change from full charging to full discharging. The result is
// at least the intended energy, which was computed with the power of that time.
func MostMoved(
	power flex.Watts,
	discharges bool,
	intended []flex.WattHours,
) flex.WattHours {
	most := inHalfHour(power)
	if discharges {
		most *= 2
	}

	for _, e := range intended {
		most = max(most, e, -e)
	}

	return most
}
