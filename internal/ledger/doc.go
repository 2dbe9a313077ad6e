// Package ledger holds the rules of money: accounts, double entry in whole pence, the steps of a
// payment, and when a user may withdraw. Money is only moved, never created: the postings of a
// transaction sum to zero. A transaction is never changed; a mistake is corrected by another
// transaction. Balances are derived from postings, never written.
//
// # Signs and units
//
// Amounts are whole pence (flex.Pence), at most [MaxAmount] a posting. A debit is positive, a
// credit negative; what a user is owed is a credit of rewards payable. What remains when an
// amount is divided goes to the account rounding.
//
// # Posted once
//
// Each transaction has a key that says what it is about ("flex event:ID:1"). The store posts a
// key once: the same transaction again changes nothing, and a different one under the same key is
// a Conflict. Transaction.Same tells the two cases apart.
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
// Move returns the postings of each step, or a Conflict if the step is not allowed:
//
//   - A request moves the amount from rewards payable to payouts in flight.
//   - posted moves it on to the bank account.
//   - rejected, cancelled and failed give it back to the user's balance.
//   - returned brings it back from the bank.
//
// Operators approve within PayoutTerms: not before the cooling-off time of a newly linked account
// is over, by two operators above an amount, and no more in a day than the cap.
//
// # Months
//
// BookingDay decides the day on which a transaction is booked: the day that it is about while
// that day's month is open, else the day on which it is recorded. A closed month never changes.
package ledger
