// Package reward is the service that turns readings into money. It settles plug sessions and
// flex events when their readings are there, posts what users earn, shows a site's balance and
// transactions, and follows each withdrawal to the bank's answer.
//
// # Settlement
//
// Sessions and flex events are settled by the same steps, in claim.go:
//
//	due       by time, or because the missing reading arrived
//	compute   the amount that is owed as far as it is known now, and the first half-hour that is missing
//	revise    the amount owed less the amount booked: one transaction, or none
//	post      with its cause; in the month that it is about, or in the open one if that is closed
//	wait      for the missing reading or for a time; never again once it is final
//
// Only compute differs: session.go multiplies a session's energy by a rate, and settlement.go
// settles the events of a site's day together, by package settle. A corrected reading, a
// consent, a price and a repair compute nothing: they mark the sessions and events that they
// affect as due. A run of "settle again" computes events in the same way and posts nothing.
//
// Each posting is made once: a transaction's key is its subject and the number of transactions
// before it. A job that was interrupted, or run twice, leaves the same books as a single run.
//
// # When sessions and events are due
//
// A session is due half an hour after its end; a day later, if it had no reading then; and at
// the last deadline. An event is due when its month is final, and before that at growing
// intervals. A new reading, price, consent or term marks what it affects as due at once. If
// another process is settling the same thing without it, the marking transaction waits until
// that ends, so that no mark is lost. Sessions and events older than [ResettledFor] do not
// change, since their readings may be deleted.
//
// A run takes up to 500 sessions or events of an organisation, and settles 25 sessions or 20
// events in one transaction, which locks them. A session's settlement has a version: a
// transaction that finds it changed by another process is rolled back. If such a transaction
// fails, each of its sessions or events is settled in one of its own. One that cannot be settled
// is put off for an hour, after four failures in a row for 2, 4 and 8 hours and so on up to a day
// (worker.PutOffAfter), and delays no other. The job fails as long as anything is put off
// (store.Queue). The search for flex events of sessions, pauses and dispatches uses the same queue.
//
// # To which session a half-hour belongs
//
// A half-hour belongs to the first session in it. All events of a site's day are settled
// together, so that one metered value, one baseline and one deviation are divided over the
// events that caused it. An event is measured by its asset's own meter if the model is
// qualified for that; otherwise by the site's boundary meter, if the user consented; otherwise
// by the asset's own meter. Energy that was settled by an asset's own meter is subtracted from
// the boundary's, and energy that was settled by a charger's meter from that of cars with
// their own meters (pool_apart.go).
//
// # Terms
//
// Rates, shares, baselines and the certainty that a sum must have apply from a London day on.
// A day of which something was settled keeps its terms; a change that would affect such a day
// is a Conflict.
//
// # Withdrawals
//
// Package ledger has their states. A user opens the balance page by a link, enters a mailed
// code in that browser, links a bank account and asks for an amount. If the account changes,
// withdrawals that the bank has not received yet are cancelled. Operators approve. Export
// writes all approved withdrawals into one payment file and moves them to processing in the
// same transaction. Each of the bank's results is taken by itself, and the same file again
// changes nothing. If a payment is returned, its amount goes back to the balance and the user
// is notified.
//
// E-mails are jobs (package store): queued in the transaction that causes them, sent at least
// once, tried for about an hour.
//
// Units: pence for postings, micro-pounds and thousandths of a penny where a price or an error
// needs them; energy in Wh; days are London's.
package reward
