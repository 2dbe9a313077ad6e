// Package books serves an organisation's finance department: it closes months, returns the
// trial balance as of any day, and exports the journal as a file.
//
//	open month ─► close, once it is over ─► closed: its trial balance is stored with a hash
//	                                        and never changes; what concerns the month later
//	                                        is booked in the open month
//
// Other packages decide what is posted, and when. The day on which a transaction is booked is
// decided by ledger.BookingDay alone, when the store posts it.
//
// # Guarantees
//
//   - Months close in order. Close closes each open month up to the named one, at most [CloseMax]
//     at once, in one transaction that locks the books: whoever posts meanwhile waits, and then
//     books in the open month.
//   - A month closes only when it is over in London.
//   - The text of the trial balance is stored with its SHA-256. flexd verify computes it again
//     from the postings.
//   - CloseDue closes months by itself, close_books_after_days after their end, if the
//     organisation has set that. Two processes that try at once close each month once: the second
//     gets a Conflict, which is not a failure of the job.
//   - A gift or write-off is posted once for each key, within the organisation's limit, together
//     with who decided it and why.
//
// # The journal as a file
//
// Export writes the postings of some days as CSV or JSON, or as journals for the import of Xero
// and QuickBooks Online: one balanced journal for each transaction, day or month, in files of no
// more lines than those programs accept. A plain journal ends with a line of totals: a file
// without it is incomplete. Amounts are pence in the database, and pounds with two decimals in
// files; debits are positive.
package books
