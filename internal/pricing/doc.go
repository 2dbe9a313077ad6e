// Package pricing decides which source's price is used for which purpose.
//
// A price has one of three roles. Schedules are made on the planning price, which must be
// known ahead. The settlement price is the value of delivered energy. The contract price
// replaces it where an organisation has sold its energy at a price of its own. Each
// organisation chooses a source for each role, from an instant on. A role without a choice
// follows a rule that depends on the kinds of sources that exist.
package pricing
