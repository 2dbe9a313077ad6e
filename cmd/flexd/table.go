package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// list prints rows as one JSON document, or as a table: a heading, and one line for each row,
// with as many cells, separated by tabs.
func list[Row any](
	c console,
	asJSON bool,
	rows []Row,
	heading string,
	cells func(Row) []any,
) error {
	if asJSON {
		return c.json(rows)
	}
	return table(c, rows, heading, cells)
}

// table prints rows as a table.
func table[Row any](
	c console,
	rows []Row,
	heading string,
	cells func(Row) []any,
) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, heading)

	for _, row := range rows {
		texts := []string{}
		for _, cell := range cells(row) {
			texts = append(texts, cellText(cell))
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	}

	return t.Flush()
}

// cellText returns a cell as a table shows it: an instant to the second, empty for a missing
// value, and reasons in one line.
func cellText(cell any) string {
	switch v := cell.(type) {
	case time.Time:
		if v.IsZero() {
			return ""
		}

		return v.Format(time.RFC3339)

	case *time.Time:
		if v == nil {
			return ""
		}

		return v.Format(time.RFC3339)

	case []string:
		return strings.Join(v, "; ")
	}

	return fmt.Sprint(cell)
}

// plainLine returns a text that somebody else wrote as one line for a terminal. Characters
// that are not printable become blanks.
func plainLine(text string) string {
	blank := func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}

		return ' '
	}

	return strings.Join(strings.Fields(strings.Map(blank, text)), " ")
}
