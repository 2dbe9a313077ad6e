package adr

import (
	"encoding/json"
	"math"
	"time"

	"flexd/internal/flex"
)

// The payloads and qualities of reports that a server can ask for.
const (
	usageReport    = "USAGE"
	baselineReport = "BASELINE"
	deltaReport    = "DELTA_USAGE"
	forecastReport = "USAGE_FORECAST"
	demandReport   = "DEMAND"
	shedReport     = "LOAD_SHED_DELTA_AVAILABLE"
	upReport       = "UP_REGULATION_AVAILABLE"
	downReport     = "DOWN_REGULATION_AVAILABLE"
	qualityReport  = "DATA_QUALITY"

	// QualityOK is of data that were metered, or planned, throughout.
	QualityOK = "OK"
	// QualityEstimated is of data that are partly by plan, or of half-hours that are only
	// partly meant.
	QualityEstimated = "ESTIMATED"
	// QualityMissing is of data that flexd does not have.
	QualityMissing = "MISSING"
)

// FleetUse is the power that the assets of a scope draw in a time, and by how much they can
// change it.
type FleetUse struct {
	flex.Span
	Quality   string
	IsFuture  bool           // it is to come: then the energy is planned
	Energy    flex.WattHours // drawn
	Reducible flex.WattHours // by which less can be drawn; of a time to come alone
	More      flex.WattHours // by which more can be drawn; likewise
}

// AssetUse is the power that one asset draws in each of some spans.
type AssetUse struct {
	Asset flex.AssetID
	Uses  []FleetUse
}

// ofAssets reports whether a report can list each asset, which is so for usage alone.
func (r *reportRequest) ofAssets() bool {
	switch r.Type {
	case usageReport, demandReport, forecastReport:
		return !r.Aggregate
	}
	return false
}

// reportRequest is a report that an event asks for.
type reportRequest struct {
	Type       string `json:"payloadType"`
	Units      string `json:"units"`
	Aggregate  bool   `json:"aggregate"`
	Start      int    `json:"startInterval"` // -1: the end of the last
	Num        int    `json:"numIntervals"`  // -1: all
	Historical bool   `json:"historical"`
	Frequency  int    `json:"frequency"` // in intervals; -1: as Num
	Repeat     int    `json:"repeat"`    // how many reports; -1: to the end
}

// UnmarshalJSON sets the specification's defaults of members that are missing.
func (r *reportRequest) UnmarshalJSON(b []byte) error {
	type plain reportRequest
	p := plain{
		Start:      -1,
		Num:        -1,
		Historical: true,
		Frequency:  -1,
		Repeat:     1,
	}

	err := json.Unmarshal(b, &p)
	*r = reportRequest(p)

	return err
}

// requestedReport is one report of those that a request stands for.
type requestedReport struct {
	*reportRequest
	place     int // among the event's reports
	at        time.Time
	intervals []int // their places in the event
}

// reportRequestsMax is how many reports of an event are sent at most.
const reportRequestsMax = 200

// requestedReports returns the reports that an event asks for, up to the first of its intervals
// without an end.
func (e *eventDocument) requestedReports(intervals []timedInterval) []requestedReport {
	last := 0
	for last < len(intervals) && !intervals[last].To.IsZero() {
		last++
	}

	var all []requestedReport
	for i := range e.ReportRequests {
		for _, one := range e.ReportRequests[i].reports(intervals[:last], last < len(intervals)) {
			one.place = i*reportRequestsMax + one.place
			all = append(all, one)
			if len(all) == reportRequestsMax {
				return all
			}
		}
	}

	return all
}

// reports returns the reports of one request. There is none for an interval without an end.
func (r *reportRequest) reports(intervals []timedInterval, endless bool) []requestedReport {
	n := len(intervals)
	at := r.first(intervals)
	num := r.Num
	if num < 0 {
		num = n
	}

	most := reportRequestsMax
	if r.Repeat >= 0 {
		most = min(most, r.Repeat)
	}

	step := r.Frequency
	if step < 1 {
		step = max(1, num)
	}

	var all []requestedReport
	for k := 0; at >= 0 && at <= n; k++ {
		if k >= most {
			break
		}
		if at == n && endless {
			break
		}

		from, to := at, min(n, at+num)
		if r.Historical {
			from, to = max(0, at-num), at
		}

		one := requestedReport{reportRequest: r, place: k}
		for i := from; i < to; i++ {
			one.intervals = append(one.intervals, i)
		}
		if at < n {
			one.at = intervals[at].From
		} else if n > 0 {
			one.at = intervals[n-1].To
		}

		if len(one.intervals) > 0 {
			all = append(all, one)
		}
		at += step
	}

	return all
}

// first returns the index of the interval at whose beginning the first report is made: the
// number of intervals for the end of the last, -1 for none.
func (r *reportRequest) first(intervals []timedInterval) int {
	if r.Start == -1 {
		return len(intervals)
	}

	for i := range intervals {
		if intervals[i].ID == r.Start {
			return i
		}
	}

	return -1
}

// powers and energies are the units that can be reported, in kW and kWh.
var (
	powers   = map[string]float64{"KW": 1, "W": 0.001, "MW": 1000}
	energies = map[string]float64{"KWH": 1, "WH": 0.001, "MWH": 1000}
)

// unit returns the unit of a report: the requested one, or the usual one of its payload.
func (r *reportRequest) unit() string {
	if r.Units != "" {
		return r.Units
	}
	switch r.Type {
	case demandReport, shedReport, upReport, downReport:
		return "KW"
	}

	return "KWH"
}

// energyOf returns the energy that the request asks for; false if flexd does not have it.
func (r *reportRequest) energyOf(u *FleetUse, o *Outcome) (flex.WattHours, bool) {
	metered := o != nil && o.NumMetered > 0
	switch r.Type {
	case usageReport, demandReport:
		return u.Energy, true
	case forecastReport:
		return u.Energy, u.IsFuture
	case shedReport:
		return -u.Reducible, u.IsFuture
	case upReport: // for the grid, up is more generation or less load
		return u.Reducible, u.IsFuture
	case downReport:
		return u.More, u.IsFuture

	case deltaReport:
		if metered {
			return o.Metered - o.MeteredBaseline, true
		}
	case baselineReport:
		if metered {
			return u.Energy - (o.Metered - o.MeteredBaseline), true
		}
	}

	return 0, false
}

// payloads returns the payloads of one interval, with their quality.
func (r *reportRequest) payloads(u *FleetUse, o *Outcome) []any {
	energy, known := r.energyOf(u, o)
	unit := r.unit()
	value := energy.KWh() / energies[unit]
	if powers[unit] > 0 {
		value = energy.KWh() / u.Len().Hours() / powers[unit]
	}

	usable := energies[unit]+powers[unit] > 0 && u.Len() > 0
	if !known || !usable || u.Quality == QualityMissing {
		return []any{payload(qualityReport, QualityMissing)}
	}

	return []any{
		payload(r.Type, math.Round(value*1e6)/1e6),
		payload(qualityReport, u.Quality),
	}
}

// readingType is the source of a report's values.
func (r *reportRequest) readingType() string {
	if !r.Historical {
		return "FORECAST"
	}
	if powers[r.unit()] > 0 {
		return "MEAN"
	}

	return "SUMMED"
}
