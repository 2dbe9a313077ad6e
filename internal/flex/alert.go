package flex

import "time"

// Alert is one time that a rule's condition held.
type Alert struct {
	ID       AlertID
	Kind     string // of exception
	Org      OrgID  // zero for all
	Level    string
	Count    int
	Title    string
	Text     string
	SinceAt  time.Time
	LatestAt time.Time
	// zero until it has lasted as long as its rule asks
	FiredAt        time.Time
	Round          int
	ResolvedAt     time.Time
	AcknowledgedAt time.Time
	AcknowledgedBy string
	SnoozedTo      time.Time
	Note           string
}
