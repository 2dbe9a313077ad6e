// Package bankfile writes files of payments as banks take them, reads what banks answer, and
// checks account numbers. It knows no clock and no store: what goes into a file is given.
//
//	payments ─► CSV, Bacs Standard 18, ISO 20022 pain.001.001.09
//	results  ◄─ CSV, ISO 20022 pain.002 and camt.053
package bankfile
