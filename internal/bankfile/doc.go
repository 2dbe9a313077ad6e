// Package bankfile writes payment files in the formats of banks, reads banks' answers, and
// checks account numbers. It uses no clock and no store: all content is passed in.
//
//	payments ─► CSV, Bacs Standard 18, ISO 20022 pain.001.001.09
//	results  ◄─ CSV, ISO 20022 pain.002 and camt.053
//
// A payment has the same parts in every format: an account, an amount in pounds and a
// reference of at most eighteen characters, by which the bank's answer names the payment. Only
// the spelling of the account holder's name differs, since each format allows other
// characters: see Text.
package bankfile
