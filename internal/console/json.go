package console

import (
	"mime"
	"strings"
)

// listing is a page's list as JSON.
type listing struct {
	Rows []map[string]any `json:"rows"` // by column, as in the page's .json
	// address of the next page, "" after the last
	Next string `json:"next"`
}

// asJSON returns the page's content for programs; nil if the page only has forms or text.
func (v *view) asJSON() any {
	if v.record != nil {
		return v.record
	}
	if v.page != "" && v.table != nil {
		return listing{v.table.objects(), v.next}
	}

	return nil
}

// wantsJSON reports whether the request asks for JSON instead of a page. A browser accepts
// HTML, and is shown the page.
func (r *request) wantsJSON() bool {
	accepts := false
	for part := range strings.SplitSeq(
		strings.Join(r.Header.Values("Accept"), ","),
		",",
	) {
		kind, _, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}

		if kind == "text/html" {
			return false
		}

		accepts = accepts || kind == "application/json"
	}

	return accepts
}
