package settle

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

// Order is a power that an asset was sent for a span, and its power without the market.
type Order struct {
	flex.Span
	Power flex.Watts // positive draws from the grid
	// in each settlement period that the span touches; idle where it ends
	Without []flex.Watts
	// when the asset accepted the order; until then the power was its own
	AcceptedAt time.Time
	Rated      flex.Watts // the asset's rated power, in both directions
}

// Orders are the orders of one asset, in the order in which they were sent. If several apply
// at once, the last of them counts.
type Orders []Order

// Detect returns the flex events in the settlement periods that a span touches: those in which
// the orders change the asset's energy by at least the given amount. An event never intends
// more than the asset can move in the time of the orders.
func (orders Orders) Detect(within flex.Span, least flex.WattHours) []Event {
	last := flex.PeriodAt(within.To.Add(-1))

	var events []Event
	for p := flex.PeriodAt(within.From); !last.Before(p); p = p.Add(1) {
		intended := orders.intended(p)
		if max(intended, -intended) >= max(least, 1) {
			events = joinEvent(events, p, intended)
		}
	}

	return events
}

// Nominated returns the asset's energy without the market in a whole settlement period, as it
// was known when the first of its orders was sent.
func (orders Orders) Nominated(p flex.Period) flex.WattHours {
	for i := range orders {
		if !orders[i].Meet(p.Span()).Empty() {
			return energyOf(orders[i].without(p), flex.HalfHour)
		}
	}

	return 0
}

// intended returns the energy by which the orders change the asset's consumption in a
// settlement period.
func (orders Orders) intended(p flex.Period) flex.WattHours {
	var wattSeconds int64
	free := []flex.Span{p.Span()} // time in which no later order applies

	for i := len(orders) - 1; i >= 0; i-- {
		o := &orders[i]
		inForce := o.Meet(flex.Span{From: o.AcceptedAt, To: o.To})
		change := int64(o.limited(o.Power) - o.without(p))

		var rest []flex.Span
		for _, f := range free {
			part := f.Meet(inForce)
			if part.Empty() {
				rest = append(rest, f)
				continue
			}

			wattSeconds += change * int64(part.Len()/time.Second)
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
		return o.limited(o.Without[i])
	}
	return 0
}

// limited limits a power to what the asset can move.
func (o *Order) limited(w flex.Watts) flex.Watts {
	return max(-o.Rated, min(w, o.Rated))
}

// energyOf returns the energy of a power over a duration, rounded towards zero.
func energyOf(w flex.Watts, d time.Duration) flex.WattHours {
	return flex.WattHours(int64(w) * int64(d/time.Second) / 3600)
}

// joinEvent extends the last event by a settlement period that continues it on the same day
// and in the same direction. Otherwise it appends a new event.
func joinEvent(
	events []Event,
	p flex.Period,
	intended flex.WattHours,
) []Event {
	day, n := p.SettlementPeriod()
	if len(events) > 0 {
		e := &events[len(events)-1]
		if e.Day == day && e.Last == n-1 && e.Down() == (intended < 0) {
			e.Last, e.Meant = n, append(e.Meant, intended)
			return events
		}
	}

	return append(events, Event{
		Day:   day,
		First: n,
		Last:  n,
		Meant: []flex.WattHours{intended},
	})
}
