// Package books answers for an organisation's books as its finance department needs them:
// months that close, the trial balance as of any day, the journal as a file.
//
//	open month ─► close, once it is over ─► closed: its trial balance is kept, hashed, and
//	                                        never changes; what concerns it later is booked
//	                                        in the open month
//
// What is posted, and when, is decided elsewhere; on which day a transaction is booked is
// decided by ledger.BookingDay alone, when the store posts it.
//
// # Guarantees
//
//   - Months close in order. Close closes each open month up to the one that is named, at most [CloseMax] at
//     once, in one transaction that holds the books: whoever posts meanwhile waits, and books in the open month.
//   - A month closes only when it is over in London.
//   - The text of the trial balance and its SHA-256 are kept. flexd verify works it out again from the postings.
//   - CloseDue closes months by itself, close_books_after_days after their end, if the organisation set that. Two
//     processes that try at once close each month once: the second gets a Conflict, which is no failure of the job.
//   - A gift or write-off is posted once by its key, within the organisation's limit, with who decided it and why.
//
// # The journal as a file
//
// Export writes the postings of some days as CSV or JSON, or as journals for the import of Xero and QuickBooks Online: one journal a
// transaction, day or month, balanced, in files within the lines that those programs take. A plain journal ends with a
// line of totals: without it the file is not whole. Amounts are in pence in the database and in pounds with two
// decimals in files; debits are positive.
package books
