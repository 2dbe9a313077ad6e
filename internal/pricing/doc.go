// Package pricing says which source's price counts for what.
//
// A price has a role. The planning price is what schedules are made on, and must be known
// ahead. The settlement price is what delivered energy is worth. The contract price takes its
// place where an organisation has sold its energy at a price of its own. Each organisation
// chooses a source for each role, from an instant on; a role without a choice follows a rule
// that depends on what kinds of sources there are.
package pricing
