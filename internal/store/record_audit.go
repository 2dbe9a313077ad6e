package store

// linkText is the line of a link of the audit log: audit_link.text. Its instants are in UTC,
// to the microsecond.
type linkText struct {
	Sequence     int64  `json:"sequence"`
	Step         string `json:"step"`
	Act          string `json:"id"`
	At           string `json:"at"`
	Who          string `json:"who,omitempty"`
	Source       string `json:"source,omitempty"`
	What         string `json:"act,omitempty"`
	Organisation string `json:"organisation,omitempty"`
	Subject      string `json:"subject,omitempty"`
	Detail       string `json:"detail,omitempty"`
	Outcome      string `json:"outcome,omitempty"`
}
