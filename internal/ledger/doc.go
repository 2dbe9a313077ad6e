// Package ledger keeps the laws of money: accounts, double entry in whole pence, what may
// follow what in a payment, and when a user may withdraw. Money is only moved, never made:
// the postings of a transaction sum to zero. A transaction is never changed; a mistake is
// set right by another transaction. Balances are derived from postings, never written.
//
// # Signs and units
//
// Amounts are whole pence (flex.Pence), at most [MaxAmount] a posting. A debit is positive, a credit negative; what a user is
// owed is a credit of rewards payable. What is left over when a whole is divided goes to the account rounding.
//
// # Once
//
// Each transaction has a key that says what it is about ("flex event:ID:1"). The store posts a key once: the same
// transaction again is no failure, and another one under the same key is a Conflict (Transaction.Same tells them apart).
//
// # A withdrawal
//
//	  ┌──────────────── failed ◄────┐
//	  ▼                             │
//	pending_approval ─► approved ─► processing ─► posted ─► returned
//	  │  │                │
//	  │  └► rejected      │
//	  └──► cancelled ◄────┘
//
// Move gives the postings of each step, or a Conflict. Asking moves the amount from rewards payable to payouts in flight; posted
// moves it on to the bank; rejected, cancelled and failed give it back to the balance; returned brings it back from the bank. An operator approves by
// PayoutTerms: not before the account's cooling time is over, above an amount two of them, and no more on a day than the cap.
//
// # Months
//
// BookingDay decides the day on which a transaction is booked: the day that it is about, while its month is open, else the day on which it is
// recorded. A closed month never changes.
package ledger
