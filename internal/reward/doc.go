// Package reward turns what was metered into money: it settles plug sessions and flex
// events when their readings are there, posts what their users earn, tells where a site
// stands, and sees withdrawals through to the bank.
//
// Sessions and flex events are settled on one path, in claim.go:
//
//	due       by time, or because the reading that was missing is there
//	compute   what is owed as it is known now, and the first half-hour that is missing
//	revise    what is owed, less what the books say about it: one transaction, or none
//	post      with its cause; in the month that it is about, or in the open one if that is closed
//	wait      for the missing reading or for a time; never again once it is final
//
// What computes differs: session.go takes a session's energy at a rate, and settlement.go the
// events of a site's day together, by package settle. A corrected reading, a consent, a price
// and a repair compute nothing: they mark what they touch as due. A run of "settle again"
// computes events the same way and posts nothing.
//
// Whatever is posted is posted once: a transaction is named by what it is about and by how many
// there were before it. A job that was interrupted, or run twice, leaves the books as one run
// would.
//
// # When something is looked at
//
// A session is due half an hour after its end, a day later if it had no reading then, and at the last deadline; an event when its month is
// final, and before that ever more seldom. A reading, a price, a consent or a term that comes marks what it touches as due at once; where another process
// is settling that, without what came, it waits for the end of it, so that no mark is lost. What is older than
// [ResettledFor] stays as it is, since its readings may be deleted.
//
// Of an organisation up to 500 sessions or events are taken in a run, and 25 or 20 settled in one transaction, which locks them. A
// session's settlement has a version: whoever finds that another process changed it in between rolls back. Where such a transaction fails, each
// of them is settled in one of its own: one that cannot be settled delays no other, and the run fails and says which it was.
//
// # Who owns a half-hour
//
// A half-hour belongs to the first session in it. All events of a site's day are settled together, so that one metered value, one baseline and one
// deviation are divided over what caused them. An event is measured by its asset's own meter if the model is qualified for that, else by the site's
// boundary where the user consented, else by the asset's own. What was settled by an asset's own meter is taken off the boundary, and what
// was settled by a charger's off the cars' that have meters of their own (pool_apart.go).
//
// # Terms
//
// Rates, shares, baselines and the certainty that a sum must have hold from a London day on. A day of which something was settled keeps its
// terms; a change that would touch one is a Conflict.
//
// # Withdrawals
//
// Package ledger has their states. A user opens the balance page by a link, enters a mailed code in that browser, links a bank account and
// asks for an amount. A changed account cancels what was not given to the bank yet. Operators approve; Export writes all that is approved into one payment
// file and moves it to processing in the same transaction; the bank's results are taken each by itself, and the same file again changes nothing. A
// payment that comes back returns the amount to the balance and tells the user.
//
// E-mails are jobs (package store): queued in the transaction that is their reason, sent at least once, tried for about an hour.
//
// Units: pence for what is posted, micro-pounds and thousandths of a penny where a price or an error needs it; energy in Wh; days are London's.
package reward
