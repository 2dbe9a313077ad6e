package flex

import "time"

// CapLimit is the most that a constraint group may draw for a time, beside its cap, or give to the grid.
type CapLimit struct {
	Group string
	Span
	Direction Direction
	Power     Watts
	Source    string     // import, openadr, or fallback
	Order     ADROrderID // of an OpenADR event; zero if it came otherwise
}

// CapLink is the link on which a group's limits come.
type CapLink struct {
	Group string
	// what binds when the link is lost: the most that is drawn, and that is given; nil for no bound
	Fallback *Watts
	Export   *Watts
	Silence  time.Duration // how long nothing may be heard
	HeardAt  time.Time
	LostAt   time.Time // since when the fallback binds; zero: it does not
}

// Of is the fallback of a direction, nil for none.
func (l *CapLink) Of(direction Direction) *Watts {
	if direction == Export {
		return l.Export
	}
	return l.Fallback
}
