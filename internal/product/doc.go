// Package product takes in the products that a system operator or a distribution operator buys: a window of time, a
// volume and a price. It asks households for them, and has control carry out what they agreed to.
//
// # States
//
//	             import          Send           its window ends
//	(reference) ───────► open ─────────► sent ───────────────────► over
//	                     ▲  │ │           │
//	              import └──┘ ├─► failed  └─► withdrawn, its instruction stopped
//	    with other terms      └─► withdrawn
//
// A product is known by its buyer's reference. It is open until AnswerBy; by default that is AnswerUsual before its window, and never before the import. SendAt is
// the later of AnswerBy and the earliest time at which control takes an instruction for such a window. The column grid_product.send_at is the mark of what waits to be sent.
//
// # Import
//
// An import is all or none, of 1 to Max products, under the organisation's lock. The same reference with the same terms changes nothing (Unchanged). With other
// terms it replaces what was not sent yet, and everybody is asked again: answers are to what was offered. What was sent, was withdrawn or has failed is a Conflict, with
// the same terms too: whoever imports it expects that it is asked for. A preview runs the same checks and keeps nothing.
//
// # Invitations and answers
//
// The sites in the product's scope that have something under control that charges are invited by a push to the endpoint invitation, queued in the transaction that keeps the product. Sites
// that come into the scope while it is open are invited by InviteLate, which looks for sites without a row in product_site. A household accepts until AnswerBy and may refuse until the
// window ends; one that refuses after the product was sent has its assets released from the instruction in the same transaction. Who does not answer takes part only
// if the product is opt-out.
//
// # Sending
//
// Send reads what is due and takes each product in a transaction of its own: control makes an instruction of it (InstructWithin), which calls assets of those who take part, and Tx.ProductDone clears the
// mark. If the mark is gone by then, the transaction is rolled back: two processes, or one that died and began again, send a product once. What control refuses for good
// is noted as the product's problem and not tried again. If the database does not answer, it is tried at the next run.
//
// # Withdrawal
//
// Withdraw clears the mark or stops the instruction, and informs everybody who was invited; a second time it changes nothing. What is over stays. All changes of a product take
// control's lock of instructions first (control.LockInstructions), so that a withdrawal and a sending cannot pass each other.
//
// # Files
//
// Read takes CSV with Columns. Unknown columns are refused, since a misspelt one would have a product settled by another baseline. Wrong rows are named together, 20 at
// most, and then nothing is imported.
package product
