// Package csvfile reads the CSV files that operators import and writes all that flexd exports: the only place that imports
// encoding/csv (RFC 4180), so that no export can hold a formula.
//
// # Reading
//
// A sheet is a header line that names the columns, then rows. A byte order mark before the header is dropped. A column is found by its
// name, in small letters and without blanks around it; columns may come in any order. Of two with one name the last counts. A required column
// that is missing, and an empty file, are flex.Invalid before the first row. Read ignores other columns; ReadKnown refuses them, for
// files in which a misspelt optional column would be taken for one that was left out (a column without a name, as spreadsheets leave
// behind, is ignored). All text is UTF-8: a file in another encoding, or with a character of the number 0, is refused at its first row
// that shows it.
//
// Rows are read one at a time and not kept: a file may be longer than memory. A Row is good until the next is read. Each has as many fields as the
// header and at most MaxLine bytes. The rows end with the first error, which is the last thing yielded:
//
//   - flex.Invalid where the sheet is at fault: its text begins with the line, which is that of the file and not of the row (a quoted
//     field may hold line ends);
//   - the reader's own error where the file cannot be read.
//
// Rows before an error were yielded. Whoever imports all or nothing therefore collects them first, or reads within a transaction.
//
// # Writing
//
// NewWriter writes the header, Write a row, and Flush hands on what was written and returns the first error since the beginning; nothing has to be
// checked before. Numbers and truth values are written as they are, an instant in UTC as RFC 3339, none (nil, a zero instant) as an empty cell, and a
// Number as its owner wrote it. All other cells are text. Text that begins as a formula does (= + - @, a tab, a line end, or the full-width forms
// of the four) gets an apostrophe before it, which spreadsheets take for a mark of text and other readers must strip. Column names are text too.
package csvfile
