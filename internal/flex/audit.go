package flex

import "time"

// AuditEntry is something that a person did to flexd.
type AuditEntry struct {
	ID      AuditID
	At      time.Time // by the true clock
	Who     string    // an operator's name
	Source  string    // the address that it came from, if any
	Act     string    // what was done, as "halt pushes"
	Org     OrgID     // zero if it concerned none, or all
	Subject string    // what it was done to
	Detail  string    // in words
	Outcome string    // ActDone, or why not; empty while it has not ended
	EndedAt time.Time
}

// ActDone is the outcome of an act that succeeded.
const ActDone = "done"

// ActSearch is the act of an operator who is shown what a search finds. Its detail has the ids of the sites.
const ActSearch = "see what a search finds"
