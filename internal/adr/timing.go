package adr

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// lengthForm and lengthStart are the specification's form of a length of time.
var lengthStart = regexp.MustCompile(`^-?P(\d|T\d)`)

var lengthForm = regexp.MustCompile(
	`^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)([DW]))?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`,
)

// lengthOf is a length of time in calendar years, months and days, and in seconds.
type lengthOf struct {
	years   int
	months  int
	days    int
	rest    time.Duration
	endless bool // P9999Y or longer
}

// endlessYears is the length from which on no end is meant.
const endlessYears = 9999

// parseLength reads a length of time.
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

	// before the fraction, which a float of so many seconds does not have
	whole := int64(seconds)
	l := lengthOf{
		years:  sign * int(n[2]),
		months: sign * int(n[3]),
		days:   sign * int(days),
	}

	if whole >= 1<<33 { // further than a time.Duration reaches
		l.days += sign * int(whole/86_400)
		whole %= 86_400
	}

	l.rest = time.Duration(
		sign,
	) * (time.Duration(whole)*time.Second +
		time.Duration((n[8]-float64(int64(n[8])))*float64(time.Second)))

	return l, nil
}

// readLength holds a length of time against its form.
func readLength(s string) (string, error) {
	_, err := parseLength(s)
	return s, err
}

// after is the instant that is a length of time later.
func (l lengthOf) after(t time.Time) time.Time {
	return t.AddDate(l.years, l.months, l.days).Add(l.rest)
}

// zero reports whether it is no time at all.
func (l lengthOf) zero() bool { return l == lengthOf{} }

// eventDocument is what is looked at of an event.
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

// timedInterval is an interval of an event with its instants.
type timedInterval struct {
	ID        int
	From, To  time.Time // To is zero without an end
	Randomize lengthOf
	// the place of the interval whose start is drawn for it: those that follow one another
	// move together
	Draw     int
	Payloads []valuesOf
}

// begin and end are when the interval of an event begins and ends, with its start drawn at random.
func (i *timedInterval) begin(event flex.ADRObjectID) time.Time {
	return i.From.Add(offset(event, i.Draw, i.Randomize))
}

func (i *timedInterval) end(event flex.ADRObjectID) time.Time {
	return i.To.Add(offset(event, i.Draw, i.Randomize))
}

// timed gives the intervals of an event their instants: an interval's own, or that of the
// event, one after the other. A start that is not given, or is said to be now, is that
// instant. After one without an end come those alone that say themselves when they begin.
func (e *eventDocument) timed(now time.Time) []timedInterval {
	start, draw := e.Period.from(now), 0

	var found []timedInterval
	endless := false
	for n, i := range e.Intervals {
		if endless && (i.Period == nil || i.Period.Start == "") {
			return found // nothing follows what has no end
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

		// in its form, or left out
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

// from is when a period begins.
func (p *periodDocument) from(now time.Time) time.Time {
	t, err := time.Parse(time.RFC3339, p.Start)
	if err != nil || p.Start == nowStart {
		return now
	}

	return t.UTC()
}

// end is when an event is over; zero if that is not known, or never.
func (e *eventDocument) end(now time.Time) time.Time {
	intervals := e.timed(now)
	if l, err := parseLength(e.Length); err == nil && !l.zero() {
		if l.endless {
			return time.Time{}
		}
		return l.after(e.begin(now, intervals))
	}

	return latestEnd(intervals)
}

// begin is when an event begins: as it says itself, or else its first interval.
func (e *eventDocument) begin(now time.Time, intervals []timedInterval) time.Time {
	if e.Period.Start == "" && len(intervals) > 0 {
		return intervals[0].From
	}

	return e.Period.from(now)
}

// latestEnd is when the last of some intervals is over; zero if one has no end.
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

// repeated reports whether an event lasts longer than its intervals, which has them repeated,
// and when these end.
func (e *eventDocument) repeated(
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
