// Package ledger keeps the laws of money: accounts, double entry in whole pence, what may
// follow what in a payment, and when a user may withdraw. Money is only moved, never made:
// the postings of a transaction sum to zero. A transaction is never changed; a mistake is
// set right by another transaction. Balances are derived from postings, never written.
package ledger
