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

// ConsentedHalfHours is HalfHours of one device at a site's boundary, from the readings that
// may be used under the spans of the user's consent. The energy between two spans is not used.
// Labels that are not of the boundary are ignored.
func ConsentedHalfHours(
	readings []flex.Reading,
	consent []flex.Span,
) []MeteredDay {
	may := slices.DeleteFunc(slices.Clone(readings), func(r flex.Reading) bool {
		return !Consented(consent, &r)
	})
	days := HalfHours(Boundary, may)

	for i := range days {
		d := &days[i]
		for n := 1; n <= d.Day.Periods(); n++ {
			if !Within(consent, d.Day.Period(n).Span()) {
				d.Known &^= 1 << (n - 1)
			}
		}
	}

	return slices.DeleteFunc(days, func(d MeteredDay) bool {
		return d.Known == 0
	})
}

// Within reports whether all of a time, or an instant, lies in one of the spans.
func Within(spans []flex.Span, time flex.Span) bool {
	return slices.ContainsFunc(spans, func(s flex.Span) bool {
		return !time.From.Before(s.From) && !time.To.After(s.To)
	})
}
