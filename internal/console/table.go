package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// exportMax bounds the rows of a part of a table that limit= asks for.
const exportMax = 100_000

// partMax is the rows of a table to download that are read, and kept, at once.
const partMax = 5000

// sortedPushes are how many deliveries of a file in an order of its own are sorted at once, of which 40 bytes each
// are kept, and how many of them are read at once. Tests set fewer.
var sortedPushes = struct{ sorted, read int }{500_000, partMax}

// pageMax is the rows of a table on a page.
const pageMax = 50

// table is a page's table, to be downloaded as CSV or JSON.
type table struct {
	Name    string // of the file
	Columns []string
	Rows    [][]any // text, integers, floats, booleans, times or nil
}

func (t *table) add(cells ...any) { t.Rows = append(t.Rows, cells) }

// objects returns the rows by column.
func (t *table) objects() []map[string]any {
	out := make([]map[string]any, 0, len(t.Rows))
	for _, row := range t.Rows {
		o := make(map[string]any, len(row))
		for i, cell := range row {
			if at, ok := cell.(time.Time); ok && at.IsZero() {
				cell = nil
			}
			o[t.Columns[i]] = cell
		}

		out = append(out, o)
	}

	return out
}

// exporting reports whether the request is for a table to download, which is longer than a page's.
func (r *request) exporting() bool {
	return strings.HasSuffix(r.URL.Path, ".csv") ||
		strings.HasSuffix(r.URL.Path, ".json")
}

// limit is how many rows are shown: a page's, of a table to download what limit= asks for, or a
// part of it, which the next follows.
func (r *request) limit() int {
	if !r.exporting() {
		return pageMax
	}

	n, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err == nil && n >= 1 {
		return min(n, exportMax)
	}

	return partMax
}

// paging are the parameters of every list beside its filters: the page, and what was done before it.
var paging = []string{"before", "limit", "done"}

// onlyFilters refuses a list by a filter that it does not have, as a page and as a table to download: its rows
// would not be those that were asked for.
func (r *request) onlyFilters(filters ...string) error {
	if err := r.knownLimit(); err != nil {
		return err
	}

	for name := range r.URL.Query() {
		if !slices.Contains(filters, name) && !slices.Contains(paging, name) {
			return flex.Fail(
				flex.Invalid,
				"there is no filter %q: there are %s",
				name,
				strings.Join(append([]string{"before", "limit"}, filters...), ", "),
			)
		}
	}

	return nil
}

// knownLimit refuses a limit= that says no number of rows: a file that ends at another number would seem whole.
func (r *request) knownLimit() error {
	q := r.URL.Query()
	if !q.Has("limit") {
		return nil
	}

	n, err := strconv.Atoi(q.Get("limit"))
	if err == nil && n >= 1 && n <= exportMax {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"limit is a number of rows from 1 to %d, not %q; without it a file has all",
		exportMax,
		q.Get("limit"),
	)
}

// Export is where a page's table can be had, with the same filters.
type Export struct{ CSV, JSON string }

func (r *request) exports() Export {
	q := r.URL.Query()
	q.Del("before")
	q.Del("done")
	tail := ""

	if len(q) > 0 {
		tail = "?" + q.Encode()
	}

	base := strings.TrimSuffix(r.URL.Path, "/")

	return Export{base + ".csv" + tail, base + ".json" + tail}
}

// with is the page's own address with one filter set to another value.
func (r *request) with(name, value string) string {
	q := r.URL.Query()
	q.Del("done")
	q.Set(name, value)

	if value == "" {
		q.Del(name)
	}

	if len(q) == 0 {
		return r.URL.Path
	}

	return r.URL.Path + "?" + q.Encode()
}

// readID reads an id of the path or the query; NotFound for a text that is not an id.
func readID[Of any](to *flex.ID[Of], text, what string) error {
	if to.UnmarshalText([]byte(text)) != nil {
		return flex.Fail(
			flex.NotFound,
			"%q is not the id of any %s",
			text,
			what,
		)
	}

	return nil
}
