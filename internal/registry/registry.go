// Package registry is the desk of sites and assets: it registers and finds them, says what
// they are eligible for, and enrols them in propositions and out again.
package registry

import (
	"flexd/internal/store"
)

// Desk keeps the register.
type Desk struct {
	DB *store.DB
}
