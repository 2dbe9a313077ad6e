// Package control follows each asset's plug sessions: events come in, schedules go out.
//
//	                 plug-in                     plug-out, another car,
//	unplugged ─────────────────────► plugged in ── end of control ──► unplugged
//	    ▲                            │  ▲     │
//	    └── plug-in within a minute ─┘  └─────┘
//	        of plug-out: as if it       intent, tariff, charge-now,
//	        had never been out          new prices: planned anew
//
// Each event plans its asset anew in the transaction that keeps the event: the schedule and
// its place in the outbox are committed together, or neither is. A background job does the same for
// what changes without an event: prices first of all. Either makes a new schedule only for
// a reason that the asset's user or the market gave; the same problem gives the same
// schedule, and nothing is sent.
//
// A schedule meets the need with no further message, ends at ready-by (or with charge-now,
// if that is later), and leaves the charger free from then on. A plan that breaks a law of
// plan.Check is never sent: the last good one stays in force, and an alarm is logged.
//
// Cars that share a main fuse which was set are planned as one (fuse.go): what was sent keeps the
// fuse by itself, whichever of it was accepted, and for TailTime after the last ready-by.
//
// Control plans only at sites that have consented to full schedule control. Events of
// others are kept, and answered alike.
package control
