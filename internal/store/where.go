package store

import (
	"fmt"
	"strconv"
	"strings"
)

// where is a WHERE clause while it is put together: its text, and the arguments $1, $2 and so on.
type where struct {
	text strings.Builder
	args []any
}

// param adds an argument and returns the parameter that stands for it.
func (w *where) param(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

// and adds a condition on one argument, whose parameter is written as $%d.
func (w *where) and(format string, arg any) {
	w.args = append(w.args, arg)
	fmt.Fprintf(&w.text, " AND "+format, len(w.args))
}

// inValues adds a condition on a column's values. Lists are filled up to a power of two, so that
// few different statements are prepared.
func (w *where) inValues(column string, values []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}

	w.text.WriteString(" AND " + column + " IN (")

	for i := range n {
		if i > 0 {
			w.text.WriteByte(',')
		}
		w.text.WriteString(w.param(values[min(i, len(values)-1)]))
	}

	w.text.WriteByte(')')
}
