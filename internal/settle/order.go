package settle

import (
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
	Least   flex.WattHours
}

// Detect returns the flex events of the order: where it asked for clearly more or less than
// the asset would have had. An event never means more than the asset can move in the time
// in which the order held.
func (o *Order) Detect() []Event {
	held := o.Meet(flex.Span{From: o.TakenAt, To: o.To})
	if held.Empty() {
		return nil
	}

	last := flex.PeriodAt(held.To.Add(-1))

	var events []Event
	for p := flex.PeriodAt(held.From); !last.Before(p); p = p.Add(1) {
		moved := o.able(o.Power) - o.without(p)
		meant := energyOf(moved, p.Span().Meet(held).Len())
		if max(meant, -meant) >= max(o.Least, 1) {
			events = joinEvent(events, p, meant)
		}
	}

	return events
}

// Nominated returns what the asset would have had in the whole settlement period.
func (o *Order) Nominated(p flex.Period) flex.WattHours {
	return energyOf(o.without(p), flex.HalfHour)
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
func joinEvent(events []Event, p flex.Period, meant flex.WattHours) []Event {
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
