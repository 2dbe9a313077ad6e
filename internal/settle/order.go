package settle

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// Order is a power that an asset was asked for during a time, and what it would have had
// without the market.
type Order struct {
	flex.Span
	Power flex.Watts // positive draws from the grid
	// in each settlement period that the span touches; idle where it ends
	Without []flex.Watts
	// when the asset took the order over; until then it was its own
	TakenAt time.Time
	Rated   flex.Watts // what the asset can move, either way
}

// Orders are what one asset was asked for, in the order in which it was asked. Where several
// hold at once, the last of them counts.
type Orders []Order

// Detect returns the flex events in the settlement periods that a span touches: where the
// orders asked for clearly more or less, at least so much, than the asset would have had. An
// event never means more than the asset can move in the time in which the orders held.
func (asked Orders) Detect(within flex.Span, least flex.WattHours) []Event {
	last := flex.PeriodAt(within.To.Add(-1))

	var events []Event
	for p := flex.PeriodAt(within.From); !last.Before(p); p = p.Add(1) {
		meant := asked.meant(p)
		if max(meant, -meant) >= max(least, 1) {
			events = joinEvent(events, p, meant)
		}
	}

	return events
}

// Nominated returns what the asset would have had in the whole settlement period, as it was known
// when the first of its orders came.
func (asked Orders) Nominated(p flex.Period) flex.WattHours {
	for i := range asked {
		if !asked[i].Meet(p.Span()).Empty() {
			return energyOf(asked[i].without(p), flex.HalfHour)
		}
	}

	return 0
}

// meant returns what the orders asked for more than the asset would have had in a settlement
// period.
func (asked Orders) meant(p flex.Period) flex.WattHours {
	var wattSeconds int64
	free := []flex.Span{p.Span()} // where no later order holds

	for i := len(asked) - 1; i >= 0; i-- {
		o := &asked[i]
		held := o.Meet(flex.Span{From: o.TakenAt, To: o.To})
		moved := int64(o.able(o.Power) - o.without(p))

		var rest []flex.Span
		for _, f := range free {
			part := f.Meet(held)
			if part.Empty() {
				rest = append(rest, f)
				continue
			}

			wattSeconds += moved * int64(part.Len()/time.Second)
			rest = append(
				rest,
				flex.Span{From: f.From, To: part.From},
				flex.Span{From: part.To, To: f.To},
			)
		}

		free = slices.DeleteFunc(rest, flex.Span.Empty)
	}

	return flex.WattHours(wattSeconds / 3600)
}

func (o *Order) without(p flex.Period) flex.Watts {
	if i := p.Sub(flex.PeriodAt(o.From)); i >= 0 && i < len(o.Without) {
		return o.able(o.Without[i])
	}
	return 0
}

// able bounds a power by what the asset can move.
func (o *Order) able(w flex.Watts) flex.Watts {
	return max(-o.Rated, min(w, o.Rated))
}

// energyOf returns the energy of a power over a time, towards zero.
func energyOf(w flex.Watts, d time.Duration) flex.WattHours {
	return flex.WattHours(int64(w) * int64(d/time.Second) / 3600)
}

// joinEvent adds a settlement period to the last of the events if it continues it on the same
// day and in the same direction, else as a new event.
func joinEvent(
	events []Event,
	p flex.Period,
	meant flex.WattHours,
) []Event {
	day, n := p.SettlementPeriod()
	if len(events) > 0 {
		e := &events[len(events)-1]
		if e.Day == day && e.Last == n-1 && e.Down() == (meant < 0) {
			e.Last, e.Meant = n, append(e.Meant, meant)
			return events
		}
	}

	return append(events, Event{
		Day:   day,
		First: n,
		Last:  n,
		Meant: []flex.WattHours{meant},
	})
}
