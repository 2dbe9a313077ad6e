package adr

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// lengthForm and lengthStart are the specification's form of a duration.
var lengthStart = regexp.MustCompile(`^-?P(\d|T\d)`)

var lengthForm = regexp.MustCompile(
	`^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)([DW]))?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`,
)

// lengthOf is a duration in calendar years, months and days, and in seconds.
type lengthOf struct {
	years   int
	months  int
	days    int
	rest    time.Duration
	endless bool // P9999Y or longer
}

// endlessYears is the duration from which on no end is meant.
const endlessYears = 9999

// parseLength parses a duration.
func parseLength(s string) (lengthOf, error) {
	m := lengthForm.FindStringSubmatch(s)
	if m == nil || !lengthStart.MatchString(s) {
		return lengthOf{}, fmt.Errorf("%q is no length of time such as PT30M", s)
	}

	var n [9]float64
	var err error
	for i := 2; i < len(m); i++ {
		if i == 5 || m[i] == "" {
			continue
		}

		n[i], err = strconv.ParseFloat(m[i], 64)
		if err != nil {
			return lengthOf{}, fmt.Errorf("%q is no length of time such as PT30M", s)
		}
	}

	days := n[4]
	if m[5] == "W" {
		days *= 7
	}

	seconds := n[6]*3600 + n[7]*60 + n[8]
	if n[2]+n[3]/12+days/365+seconds/31_536_000 >= endlessYears-1 {
		return lengthOf{endless: true}, nil
	}

	sign := 1
	if m[1] != "" {
		sign = -1
	}

	// the fraction is added separately, since a float of so many seconds would lose it
	integer := int64(seconds)
	l := lengthOf{
		years:  sign * int(n[2]),
		months: sign * int(n[3]),
		days:   sign * int(days),
	}

	if integer >= 1<<33 { // beyond the range of time.Duration
		l.days += sign * int(integer/86_400)
		integer %= 86_400
	}

	l.rest = time.Duration(
		sign,
	) * (time.Duration(integer)*time.Second +
		time.Duration((n[8]-float64(int64(n[8])))*float64(time.Second)))

	return l, nil
}

// readLength checks the form of a duration.
func readLength(s string) (string, error) {
	_, err := parseLength(s)
	return s, err
}

// after returns the instant that is the duration later.
func (l lengthOf) after(t time.Time) time.Time {
	return t.AddDate(l.years, l.months, l.days).Add(l.rest)
}

// zero reports whether the duration is zero.
func (l lengthOf) zero() bool { return l == lengthOf{} }

// eventDocument has the used members of an event.
type eventDocument struct {
	Name      string             `json:"eventName"`
	Length    string             `json:"duration"`
	Priority  *int64             `json:"priority"`
	Period    periodDocument     `json:"intervalPeriod"`
	Intervals []intervalDocument `json:"intervals"`

	Descriptors []struct {
		Type  string `json:"payloadType"`
		Units string `json:"units"`
	} `json:"payloadDescriptors"`
	ReportRequests []reportRequest `json:"reportDescriptors"`

	usual unitsOf // of its program
}

type periodDocument struct {
	Start     string `json:"start"`
	Length    string `json:"duration"`
	Randomize string `json:"randomizeStart"`
}

type intervalDocument struct {
	ID       int             `json:"id"`
	Period   *periodDocument `json:"intervalPeriod"`
	Payloads []valuesOf      `json:"payloads"`
}

type valuesOf struct {
	Type   string `json:"type"`
	Values []any  `json:"values"`
}

// timedInterval is an interval of an event with its start and end.
type timedInterval struct {
	ID        int
	From, To  time.Time // To is zero without an end
	Randomize lengthOf
	// index of the interval whose random start applies: consecutive intervals are shifted
	// together
	Draw     int
	Payloads []valuesOf
}

// begin and end return when the interval of an event begins and ends, with its random start.
func (i *timedInterval) begin(event flex.ADRObjectID) time.Time {
	return i.From.Add(offset(event, i.Draw, i.Randomize))
}

func (i *timedInterval) end(event flex.ADRObjectID) time.Time {
	return i.To.Add(offset(event, i.Draw, i.Randomize))
}

// timedIntervals returns the intervals of an event with their start and end. An interval has
// its own period or follows the previous one in the period of the event. A start that is
// missing, or means now, is the given instant. After an interval without an end, only
// intervals with a start of their own follow.
func (e *eventDocument) timedIntervals(now time.Time) []timedInterval {
	start, draw := e.Period.from(now), 0

	var found []timedInterval
	endless := false
	for n, i := range e.Intervals {
		if endless && (i.Period == nil || i.Period.Start == "") {
			return found // no interval follows one without an end
		}

		period := e.Period
		if i.Period != nil {
			if i.Period.Start != "" {
				start, draw = i.Period.from(now), n
			}

			if i.Period.Length != "" {
				period.Length = i.Period.Length
			}

			if i.Period.Randomize != "" {
				period.Randomize, draw = i.Period.Randomize, n
			}
		}

		one := timedInterval{
			ID:       i.ID,
			From:     start,
			Draw:     draw,
			Payloads: i.Payloads,
		}

		// the form was checked before; a missing one is zero
		one.Randomize, _ = parseLength(period.Randomize)
		length, err := parseLength(period.Length)
		endless = err != nil || length.endless || length.zero()
		if !endless {
			one.To = length.after(start)
			start = one.To
		}

		found = append(found, one)
	}

	return found
}

// from returns when a period begins.
func (p *periodDocument) from(now time.Time) time.Time {
	t, err := time.Parse(time.RFC3339, p.Start)
	if err != nil || p.Start == nowStart {
		return now
	}

	return t.UTC()
}

// end returns when an event ends; zero if it has no known end.
func (e *eventDocument) end(now time.Time) time.Time {
	intervals := e.timedIntervals(now)
	if l, err := parseLength(e.Length); err == nil && !l.zero() {
		if l.endless {
			return time.Time{}
		}
		return l.after(e.begin(now, intervals))
	}

	return latestEnd(intervals)
}

// begin returns when an event begins: its own start, or else that of its first interval.
func (e *eventDocument) begin(now time.Time, intervals []timedInterval) time.Time {
	if e.Period.Start == "" && len(intervals) > 0 {
		return intervals[0].From
	}

	return e.Period.from(now)
}

// latestEnd returns the latest end of some intervals; zero if one has no end.
func latestEnd(intervals []timedInterval) time.Time {
	var latest time.Time
	for _, i := range intervals {
		if i.To.IsZero() {
			return time.Time{}
		}
		latest = flex.Later(latest, i.To)
	}

	return latest
}

// loop returns when an event's intervals end, and whether the event lasts longer, so that they
// are repeated.
func (e *eventDocument) loop(
	now time.Time,
	intervals []timedInterval,
) (time.Time, bool) {
	end := latestEnd(intervals)
	l, err := parseLength(e.Length)
	if err != nil || l.zero() || end.IsZero() {
		return end, false
	}

	return end, l.endless || l.after(e.begin(now, intervals)).After(end)
}
