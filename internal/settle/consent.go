package settle

import (
	"slices"

	"flexd/internal/flex"
)

// Consented reports whether a reading of a site's boundary may be used under the spans of the
// user's consent: a register if it was read in one of them, or as it ended; any other reading
// if all of its time lies in one.
func Consented(spans []flex.Span, r *flex.Reading) bool {
	switch r.Label {
	case flex.BoundaryImportRegister, flex.BoundaryExportRegister:
		return Within(spans, flex.Span{From: r.To, To: r.To})
	}
	return Within(spans, r.Span)
}

// Within reports whether all of a time, or an instant, lies in one of the spans.
func Within(spans []flex.Span, time flex.Span) bool {
	return slices.ContainsFunc(spans, func(s flex.Span) bool { return !time.From.Before(s.From) && !time.To.After(s.To) })
}
