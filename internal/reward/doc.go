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
package reward
