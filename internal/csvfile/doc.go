// Package csvfile reads the CSV files that operators import and writes all that flexd exports.
// It is the only package that imports encoding/csv (RFC 4180), so that no export can contain a
// formula.
//
// # Reading
//
// A file has a header line with the names of the columns, then rows. A byte order mark before
// the header is dropped. Columns may come in any order and are found by name; capitals and
// surrounding blanks do not matter. If two columns have one name, the last counts. A missing
// required column, or an empty file, is flex.Invalid before the first row.
//
// Read ignores other columns. ReadKnown refuses them, for files in which a misspelt optional
// column would be taken for a missing one; it ignores columns without a name, which
// spreadsheets leave behind. All text is UTF-8: a file in another encoding, or with a NUL
// character, is refused at the first row that shows it.
//
// Rows are read one at a time and not stored: a file may be larger than memory. A Row is valid
// until the next one is read. Each has as many fields as the header, and at most MaxLine
// bytes. Reading ends at the first error, which is yielded last:
//
//   - flex.Invalid if the file's content is wrong. Its text begins with the number of the line
//     in the file, which may differ from that of the row, as a quoted field may contain line
//     ends.
//   - The reader's own error if the file cannot be read.
//
// Rows before an error have been yielded. An import that is all or nothing therefore collects
// them first, or reads within a transaction.
//
// # Writing
//
// NewWriter writes the header, and Write a row. Flush passes on what was written and returns
// the first error since the beginning; no earlier check is needed. Numbers and truth values
// are written as they are, an instant in UTC as RFC 3339, nil or a zero instant as an empty
// cell, and a Number as its owner wrote it. All other cells are text. A text that begins like
// a formula (= + - @, a tab, a line end, or the full-width forms of the four) gets an
// apostrophe before it: spreadsheets take it for a mark of text, and other readers must strip
// it. Column names are treated as text too.
package csvfile
