package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// exportMax is the most rows of a part of a table that limit= may ask for.
const exportMax = 100_000

// partMax is the most rows of a downloaded table that are in memory at a time.
const partMax = 5000

// sortedPushes sets how many deliveries are sorted at once for a file in a chosen order, at 40
// bytes each in memory, and how many of them are read at once. Tests use smaller numbers.
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

// exporting reports whether the request is for a download, which is longer than a page.
func (r *request) exporting() bool {
	return strings.HasSuffix(r.URL.Path, ".csv") ||
		strings.HasSuffix(r.URL.Path, ".json")
}

// limit returns the number of rows: of a page, of a download as limit= asks for, or of a part
// of it.
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

// paging are the parameters of every list besides its filters: the page, and the last action.
var paging = []string{"before", "limit", "done"}

// onlyFilters refuses a filter that a list does not have, on a page and in a download.
// Otherwise the rows would not be those that were asked for.
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

// knownLimit refuses a limit= that is not a number of rows. Otherwise a file with another
// number of rows would seem complete.
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

// Export is the address for the download of a page's table, with the same filters.
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

// with returns the page's address with one filter set to another value.
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
func readID[Of any](to *flex.ID[Of], text, label string) error {
	if to.UnmarshalText([]byte(text)) != nil {
		return flex.Fail(
			flex.NotFound,
			"%q is not the id of any %s",
			text,
			label,
		)
	}

	return nil
}
