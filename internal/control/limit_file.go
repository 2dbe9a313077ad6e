package control

import (
	"io"
	"math"
	"strconv"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// ReadLimits reads limits of feeders from CSV with the columns group, start_timestamp, end_timestamp, limit_kw
// and, if not all are of what is drawn, direction. A file that cannot be read is flex.Invalid.
func ReadLimits(f io.Reader) ([]flex.CapLimit, error) {
	var limits []flex.CapLimit
	for row, err := range csvfile.Read(
		f,
		"group",
		"start_timestamp",
		"end_timestamp",
		"limit_kw",
	) {
		if err != nil {
			return nil, err
		}

		l := flex.CapLimit{
			Group:     row.Get("group"),
			Direction: flex.Direction(row.Get("direction")),
		}

		l.From, err = row.Instant("start_timestamp")
		if err == nil {
			l.To, err = row.Instant("end_timestamp")
		}
		if err != nil {
			return nil, err
		}

		kw, err := strconv.ParseFloat(row.Get("limit_kw"), 64)
		if err != nil || !(math.Abs(kw) <= flex.CapMax.KW()) {
			return nil, row.Fault(
				"limit_kw is %q: it should be a power in kW",
				row.Get("limit_kw"),
			)
		}

		l.Power = flex.FromKW(kw)
		limits = append(limits, l)
		if len(limits) > LimitsMax {
			return nil, row.Fault("there are more than %d limits", LimitsMax)
		}
	}

	return limits, nil
}
