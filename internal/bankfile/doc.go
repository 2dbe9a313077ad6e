// Package bankfile writes files of payments as banks take them, reads what banks answer, and
// checks account numbers. It knows no clock and no store: what goes into a file is given.
//
//	payments ─► CSV, Bacs Standard 18, ISO 20022 pain.001.001.09
//	results  ◄─ CSV, ISO 20022 pain.002 and camt.053
//
// A payment is the same in every format: an account, an amount in pounds and a reference of at
// most eighteen characters that names the payment in whatever the bank answers. Only its name
// differs, since each format takes other characters: see Text.
package bankfile
