// Package delivery sends to each organisation's endpoint what the other services committed to
// the outbox: schedules, dispatch events and test messages.
//
// # Guarantees
//
//   - At least once: a push that was committed is sent until the endpoint takes it, refuses it
//     for good, or its time is over. A receiver recognises a repeated push by its Webhook-Id.
//   - Never backwards: no schedule of an asset is sent after a newer one of it was accepted.
//     A newer schedule waits for an attempt at the older one that is under way.
//   - Signed: every attempt bears a signature by the endpoint's secret (Standard Webhooks 1.0),
//     and for some time by the secret before it.
//   - Apart: endpoints do not delay each other.
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
// A claim leases due rows of the outbox to one holder, a random number made for that claim.
// Several processes share the work by claims. The outcome of an attempt changes a row only
// while the lease under which it was tried is in force, so a process that was paused and wakes
// changes nothing: of its attempt only that the client accepted it is recorded. An attempt is begun only if it can end within its lease. A process that dies
// leaves leases that run out after [lease]; one that starts on SQLite frees those of its
// predecessor at once (Recover). If the answer to a claim is lost, the next claim bears the same
// holder and says so: what the lost one leased is due again at once.
//
// # Pipeline of one endpoint
//
// Each endpoint has a dispatcher, a goroutine that exists while there is something to do:
//
//		claimer ──claimed──► senders ──attempted──► recorder ──recorded──► due again?
//		   ▲                                                                  │
//		   └──────────────────────────────────────────────────────────────────┘
//
//	  - The claimer leases what is due, as much as the endpoint's concurrency leaves free and the
//	    endpoint's rate allows. The rate is kept in the database, as all processes share it.
//	  - A sender makes one attempt.
//	  - The recorder writes the outcomes of many attempts in one transaction.
//	  - The breaker opens after [openAfter] failures in a row. While it is open nothing is claimed;
//	    afterwards one attempt at a time is made until one is taken.
//
// Claiming, sending and recording run in goroutines of their own and report to the dispatcher
// by its channel of events; all state of a dispatcher belongs to its own goroutine.
//
// # Failures
//
//   - The endpoint fails: the push is pending, with a growing delay; the breaker may open.
//   - The endpoint answers 410: it is disabled, in the transaction that records the answer.
//   - The endpoint is set again meanwhile: what the former one refused is offered to the new one
//     at once, and the breaker closes.
//   - The database cannot be read: nothing is claimed for [troubleWait].
//   - The clock is set back: the pauses of the dispatcher, by the rate, the breaker or a failing database, end after as
//     long as without that. What is due in the time that comes again waits for it.
//   - Schedules are late, by a halt or a failure that is over: if their cars have more power than the
//     ramp, each gets a turn (ramp.Turns), with the end of the halt or before the next claim.
//   - The outcomes cannot be written: they are kept and tried again, up to ten transactions'
//     worth; beyond that they are dropped, their leases run out, and they are sent again.
package delivery
