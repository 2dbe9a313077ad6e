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

// meant returns what the event was to move in a settlement period.
func (e *EventPart) meant(n int) flex.WattHours {
	if i := n - e.First; i >= 0 && i < len(e.Meant) {
		return e.Meant[i]
	}
	return 0
}

// bound keeps an energy within what the event's asset can have moved in a settlement period.
func (e *EventPart) bound(n int, moved flex.WattHours) flex.WattHours {
	if i := n - e.First; i >= 0 && i < len(e.Bounds) {
		moved = min(max(moved, e.Bounds[i].Least), e.Bounds[i].Most)
	}

	// A meter may read a tenth more than the rated power, and so may what is shown of a plan.
	if e.Most > 0 {
		return min(max(moved, -e.Most), e.Most)
	}

	return moved
}

// shareBetween divides a meter's deviation in a settlement period among its events, and returns
// what is nobody's of it.
//
// The deviation goes to the events that were meant to move the site that way, in proportion
// to what they were meant to move; if none was, to all of the period in proportion to the
// same. So no event gains by what another one beside it took back. What an event would get
// beyond what its asset can have moved is nobody's.
func shareBetween(
	claims []EventPart,
	n int,
	deviation flex.WattHours,
) ([]flex.WattHours, flex.WattHours) {
	parts := make([]flex.WattHours, len(claims))
	var toward, all []int64
	var in []int // the claims that have a part
	with := false

	for i := range claims {
		e := &claims[i]
		if n < e.First || n > e.Last {
			continue
		}

		meant := int64(e.bound(n, e.meant(n)))
		weight := max(meant, -meant)
		along := int64(0)

		if meant != 0 && deviation != 0 && (meant > 0) == (deviation > 0) {
			along, with = weight, true
		}

		in = append(in, i)
		toward, all = append(toward, along), append(all, weight)
	}

	if !with {
		toward = all
	}

	unassigned := deviation
	for k, part := range Split(deviation, toward) {
		part = claims[in[k]].bound(n, part)
		unassigned -= part
		parts[in[k]] = part
	}

	return parts, unassigned
}

// MostMoved returns what an asset of the power can have moved in a half-hour. One that gives
// energy too can turn from taking in full to giving in full. What its schedules meant to move
// was worked out from the power that it had then.
func MostMoved(
	power flex.Watts,
	gives bool,
	meant []flex.WattHours,
) flex.WattHours {
	most := inHalfHour(power)
	if gives {
		most *= 2
	}

	for _, e := range meant {
		most = max(most, e, -e)
	}

	return most
}
