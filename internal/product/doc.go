// Package product is the service of the products that a system operator or a distribution
// operator buys: a window of time, a volume and a price. It invites households to take part,
// and has control carry out the product with those that do.
//
// # States
//
//	             import          Send           its window ends
//	(reference) ───────► open ─────────► sent ───────────────────► over
//	                     ▲  │ │           │
//	              import └──┘ ├─► failed  └─► withdrawn, its instruction stopped
//	    with other terms      └─► withdrawn
//
// A product is identified by its buyer's reference. It is open until AnswerBy; by default that
// is AnswerUsual before its window, and never before the import. SendAt is the later of
// AnswerBy and the earliest time at which control accepts an instruction for such a window.
// The column grid_product.send_at marks the products that wait to be sent.
//
// # Import
//
// An import is all or nothing, of 1 to Max products, under the organisation's lock. The same
// reference with the same terms changes nothing (Unchanged). Other terms replace those of a
// product that was not sent yet, and everybody is invited again, as answers are to what was
// offered. A product that was sent, was withdrawn or has failed is a Conflict, even with the
// same terms, as its importer expects that households are invited. A preview runs the same
// checks and stores nothing.
//
// # Invitations and answers
//
// Sites in the product's scope with an asset under control that charges are invited by a push
// to the endpoint invitation, queued in the transaction that stores the product. Sites that
// come into the scope while it is open are invited by InviteLate, which searches for sites
// without a row in product_site.
//
// A household may accept until AnswerBy and refuse until the window ends. If it refuses after
// the product was sent, its assets are released from the instruction in the same transaction.
// A household that does not answer takes part only if the product is opt-out.
//
// # Sending
//
// Send reads the products that are due and takes each in a transaction of its own: control
// makes an instruction of it (InstructWithin), which calls assets of those who take part, and
// Tx.ProductDone clears the mark. If the mark was cleared meanwhile, the transaction is rolled
// back. So a product is sent once, even by two processes, or by one that died and started
// again. If control refuses it for good, that is stored as the product's problem and not tried
// again. If the database does not answer, the next run tries again.
//
// # Withdrawal
//
// Withdraw clears the mark or stops the instruction, and informs everybody who was invited; a
// second call changes nothing. A product that is over does not change. All changes of a
// product first take control's lock of instructions (control.LockInstructions), so that a
// withdrawal and a sending are done one after the other.
//
// # Files
//
// Read reads CSV with Columns. Unknown columns are refused, since a misspelt one could have a
// product settled by the wrong baseline. Wrong rows are reported together, 20 at most, and
// then nothing is imported.
package product
