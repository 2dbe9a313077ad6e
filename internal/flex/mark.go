package flex

import "time"

// RegisterMark is what a meter that counts up showed at an instant.
type RegisterMark struct {
	At     time.Time
	Energy Micro // of a kWh
}
