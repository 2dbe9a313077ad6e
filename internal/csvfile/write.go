package csvfile

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Number is a number written by its owner, such as an amount with two decimals. It is
// written as it is given.
type Number string

// Writer writes a CSV file: a header line that names the columns, then rows. No cell of it
// begins a formula. An error stays with the writer until Close returns it.
type Writer struct {
	csv    *csv.Writer
	fields []string
}

// NewWriter returns a writer that has written the names of the columns.
func NewWriter(w io.Writer, columns ...string) *Writer {
	out := &Writer{
		csv:    csv.NewWriter(w),
		fields: make([]string, 0, len(columns)),
	}

	for _, name := range columns {
		out.fields = append(out.fields, text(name))
	}
	_ = out.csv.Write(out.fields) // Flush returns it

	return out
}

// Write writes a row. A cell is text, a number, a truth value, an instant, or nil for none.
func (w *Writer) Write(cells ...any) {
	w.fields = w.fields[:0]
	for _, cell := range cells {
		w.fields = append(w.fields, Cell(cell))
	}
	_ = w.csv.Write(w.fields) // Flush returns it
}

// Flush hands on what was written, and returns the first error there was.
func (w *Writer) Flush() error {
	w.csv.Flush()
	return w.csv.Error()
}

// Cell writes a cell of a CSV file. Numbers stay numbers; all else is text that a
// spreadsheet must not take for a formula.
func Cell(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case time.Time:
		if v.IsZero() {
			return ""
		}

		return v.UTC().Format(time.RFC3339)
	case int, int64, int32, uint64, uint32, float64, bool:
		return fmt.Sprint(v)
	case Number:
		return string(v)
	case string:
		return text(v)
	}

	return text(fmt.Sprint(cell))
}

// formulaStarts are the characters by which spreadsheets know a formula, or look for one
// behind them; the last four are read as the first four where East Asian text is typed.
const formulaStarts = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"

// text writes text so that no spreadsheet computes it: a leading apostrophe makes it text.
func text(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	if s != "" && strings.ContainsRune(formulaStarts, first) {
		return "'" + s
	}

	return s
}
