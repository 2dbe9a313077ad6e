// Package delivery sends to each organisation's endpoint what the other services committed to
// the outbox: schedules, dispatch events and test messages.
//
// # Guarantees
//
//   - At least once: a committed push is sent until the endpoint accepts it, refuses it for
//     good, or its time is over. A receiver recognises a repeated push by its Webhook-Id.
//   - In order: no schedule of an asset is sent after a newer one of it was accepted. A newer
//     schedule waits for an attempt at the older one that is under way.
//   - Signed: every attempt has a signature by the endpoint's secret (Standard Webhooks 1.0),
//     and for some time by the secret before it.
//   - Isolated: endpoints do not delay each other.
//
// # States of a push
//
//	queued ─► under way ─► accepted                   2xx
//	  ▲          │  │
//	  │          │  └────► rejected                   4xx but those below
//	  │          ▼
//	  └──── pending ─────► superseded                 a newer schedule replaced it
//	 5 s … 5 min    │
//	 408 425 429    ├────► expired                    its schedule is over
//	 3xx 5xx        └────► retracted                  the car was unplugged, control ended
//	 no answer             410: it waits, and the endpoint is disabled
//
// # Leases
//
// A claim leases due rows of the outbox to a holder, a random number made for that claim.
// Several processes share the work by their claims. The outcome of an attempt changes a row
// only while the lease under which it was made is in force. A process that was stopped and
// continues later therefore changes nothing; of its attempt, only an acceptance by the client
// is recorded. An attempt is begun only if it can end within its lease.
//
// The leases of a process that dies end after [lease]. A process that starts on SQLite frees
// the leases of its predecessor at once (Recover). If the answer to a claim is lost, the next
// claim uses the same holder and says so: the rows that the lost one leased are due again at
// once.
//
// # Pipeline of one endpoint
//
// Each endpoint has a dispatcher, a goroutine that exists while there is something to do:
//
//	claimer ──claimed──► senders ──attempted──► recorder ──recorded──► due again?
//	   ▲                                                                  │
//	   └──────────────────────────────────────────────────────────────────┘
//
// Its parts are these:
//
//   - The claimer leases due rows, as many as the endpoint's concurrency leaves free and its
//     rate allows. The rate is stored in the database, as all processes share it.
//   - A sender makes one attempt.
//   - The recorder writes the outcomes of many attempts in one transaction.
//   - The breaker opens after [openAfter] failures in a row. While it is open nothing is
//     claimed; afterwards one attempt at a time is made until one is accepted.
//
// Claiming, sending and recording run in separate goroutines and report to the dispatcher
// through its channel of events. Only the dispatcher's own goroutine reads and writes its
// state.
//
// # Failures
//
//   - The endpoint fails: the push is pending, with a growing delay; the breaker may open.
//   - The endpoint answers 410: it is disabled, in the transaction that records the answer.
//   - The endpoint is set again meanwhile: pushes that the former one refused are offered to
//     the new one at once, and the breaker closes.
//   - The database cannot be read: nothing is claimed for [troubleWait].
//   - The clock is set back: the dispatcher's pauses (for the rate, the breaker or a failing
//     database) last no longer than without that. A push that was due in the time that is
//     repeated waits for it.
//   - Schedules are late, because of a halt or a failure that is over: if their cars have more
//     power than the ramp allows, each gets a turn (ramp.Turns), at the end of the halt or
//     before the next claim.
//   - The outcomes cannot be written: they stay in memory and are tried again, up to ten
//     transactions' worth, and nothing is claimed until they are written. Further ones, and all
//     of a process that stops, are dropped: their leases end, and the pushes are sent again.
//   - One outcome cannot be recorded: the others are, each in a transaction of its own. That one
//     is logged and dropped; its lease ends, and the push is sent again.
package delivery
