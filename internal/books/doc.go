// Package books answers for an organisation's books as its finance department needs them:
// months that close, the trial balance as of any day, the journal as a file.
//
//	open month ─► close, once it is over ─► closed: its trial balance is kept, hashed, and
//	                                        never changes; what concerns it later is booked
//	                                        in the open month
//
// What is posted, and when, is decided elsewhere; on which day a transaction is booked is
// decided by ledger.BookingDay alone, when the store posts it.
package books
