package tariff

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zone rules travel with the program

	"flexd/internal/flex"
)

// MaxRanges is the number of ranges that one text may list: one for each half-hour.
const MaxRanges = 48

const day = 24 * time.Hour

// form is the end of every refusal: what would be right.
const form = `write daily ranges as HH:MM-HH:MM, separated by commas, for example "00:00-05:30,23:30-24:00"`

// Windows are the off-peak hours of every day in a zone. The zero value has none.
type Windows struct {
	zone   *time.Location
	ranges []hours // rising, with peak time between any two
}

// hours are a half-open range of wall time, as time after midnight.
type hours struct{ from, to time.Duration }

// Parse reads off-peak hours such as "00:00-05:30, 23:30-24:00", to be read on the
// clocks of an IANA zone. A range over midnight means its two halves, and ranges that
// overlap or touch mean their union. Only a single-rate or a dynamic tariff may leave
// the text empty: then no hour is dearer by the tariff, and all are off-peak. Anything
// else is a flex.Malformed that shows the right form.
func Parse(offPeak, zone string, typ flex.TariffType) (Windows, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Windows{}, err
	}

	if strings.Trim(offPeak, " ") == "" {
		if typ == flex.SingleRate || typ == flex.DynamicTariff {
			return Windows{loc, []hours{{0, day}}}, nil
		}
		return Windows{}, flex.Fail(
			flex.Malformed,
			"off_peak_times is empty, which only the tariff types single_rate and dynamic may leave so: %s",
			form,
		)
	}

	var ranges []hours
	n := 0

	for part := range strings.SplitSeq(offPeak, ",") {
		if n++; n > MaxRanges {
			return Windows{}, flex.Fail(
				flex.Malformed,
				"off_peak_times lists more than %d ranges",
				MaxRanges,
			)
		}

		h, err := parseRange(strings.Trim(part, " "))
		if err != nil {
			return Windows{}, err
		}

		if h.from < h.to {
			ranges = append(ranges, h)
			continue
		}

		ranges = append(ranges, hours{h.from, day})
		if h.to > 0 {
			ranges = append(ranges, hours{0, h.to})
		}
	}

	return Windows{loc, union(ranges)}, nil
}

// parseRange reads one HH:MM-HH:MM; an end before the start is on the next day.
func parseRange(s string) (hours, error) {
	if s == "" {
		return hours{}, flex.Fail(
			flex.Malformed,
			"off_peak_times has a comma with no range beside it: %s",
			form,
		)
	}

	a, b, dash := strings.Cut(s, "-")
	from, okFrom := parseClock(a)
	to, okTo := parseClock(b)

	if !dash || !okFrom || !okTo {
		return hours{}, flex.Fail(
			flex.Malformed,
			"off_peak_times: %s is not a range of times: %s",
			quote(s),
			form,
		)
	}

	if from == day {
		return hours{}, flex.Fail(
			flex.Malformed,
			"off_peak_times: %s starts at 24:00, which may only end a range: %s",
			quote(s),
			form,
		)
	}

	if from == to {
		return hours{}, flex.Fail(
			flex.Malformed,
			"off_peak_times: %s is empty; the whole day is 00:00-24:00: %s",
			quote(s),
			form,
		)
	}

	return hours{from, to}, nil
}

// parseClock reads HH:MM in ASCII digits, 00:00 to 24:00.
func parseClock(s string) (time.Duration, bool) {
	if len(s) != 5 || s[2] != ':' {
		return 0, false
	}

	for _, i := range []int{0, 1, 3, 4} {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}

	h, m := int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	if m > 59 || h*60+m > 24*60 {
		return 0, false
	}

	return time.Duration(h*60+m) * time.Minute, true
}

// quote shows the start of what a client wrote.
func quote(s string) string {
	const shown = 40
	if r := []rune(s); len(r) > shown {
		s = string(r[:shown]) + "…"
	}

	return fmt.Sprintf("%q", s)
}

// union sorts ranges and joins those that overlap or touch.
func union(ranges []hours) []hours {
	slices.SortFunc(ranges, func(a, b hours) int {
		return int(a.from - b.from)
	})
	out := ranges[:1]

	for _, h := range ranges[1:] {
		if last := &out[len(out)-1]; h.from <= last.to {
			last.to = max(last.to, h.to)
		} else {
			out = append(out, h)
		}
	}

	return out
}

// String writes the hours in the one form that Parse reads back as the same: rising,
// joined, and with a range over midnight in its two halves.
func (w Windows) String() string {
	parts := make([]string, len(w.ranges))
	for i, h := range w.ranges {
		parts[i] = clock(h.from) + "-" + clock(h.to)
	}

	return strings.Join(parts, ",")
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// OffPeak returns the off-peak times of a tariff within a span. known is false if the tariff
// names none, as where there is no tariff: then no hour is dearer than another by it.
func OffPeak(t flex.Tariff, within flex.Span) ([]flex.Span, bool) {
	w, err := Parse(t.OffPeak, t.Zone, t.Type)
	if err != nil {
		return nil, false
	}

	return w.Spans(within), true
}

// Spans returns the off-peak time within a span, in order, none touching the next.
// It takes each stretch of time between two changes of the clocks by itself, because
// within one the wall clock is a fixed shift away from UTC.
func (w Windows) Spans(within flex.Span) []flex.Span {
	var spans []flex.Span
	for at := within.From; at.Before(within.To) && len(w.ranges) > 0; {
		stretch := flex.Span{From: at, To: within.To}
		if _, end := bounds(at.In(w.zone)); !end.IsZero() {
			stretch = stretch.Meet(flex.Span{From: at, To: end})
		}

		spans = w.appendStretch(spans, stretch)
		at = stretch.To
	}

	return spans
}

// appendStretch adds the off-peak time of a stretch without a change of the clocks.
func (w Windows) appendStretch(
	spans []flex.Span,
	stretch flex.Span,
) []flex.Span {
	_, offset := stretch.From.In(w.zone).Zone()
	for midnight := midnightBefore(stretch.From, offset); midnight.Before(stretch.To); midnight = midnight.Add(
		day,
	) {
		for _, h := range w.ranges {
			s := stretch.Meet(flex.Span{
				From: midnight.Add(h.from),
				To:   midnight.Add(h.to),
			})
			if s.Empty() {
				continue
			}

			s.From, s.To = s.From.UTC(), s.To.UTC()
			if n := len(spans); n > 0 && spans[n-1].To.Equal(s.From) {
				spans[n-1].To = s.To
			} else {
				spans = append(spans, s)
			}
		}
	}

	return spans
}

// midnightBefore returns the last instant not after at that clocks running offset
// seconds ahead of UTC would call midnight.
func midnightBefore(at time.Time, offset int) time.Time {
	local := at.Unix() + int64(offset)
	past := (local%86400 + 86400) % 86400
	return time.Unix(local-past-int64(offset), 0).UTC()
}

// NextTimeOfDay returns the first instant after the given one at which a clock in the zone
// shows the wall time. Each day has one such instant: the first if the clocks going
// back show it twice, the end of the gap if the clocks going forward skip it. Cars are
// ready by it, and a background job may be due by it.
func NextTimeOfDay(
	after time.Time,
	wall flex.WallTime,
	zone *time.Location,
) time.Time {
	y, m, d := after.In(zone).Date()
	for {
		midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		at := firstShowing(midnight.Add(time.Duration(wall)), zone)
		if at.After(after) {
			return at
		}
		d++
	}
}

// firstShowing returns the first instant at which a clock in the zone shows the date
// and time that shown has in UTC, or the end of the gap that skips it. It walks the
// stretches between two changes of the clocks, each of which shows the times from its
// start to its end shifted by its offset.
func firstShowing(shown time.Time, zone *time.Location) time.Time {
	const early = 26 * time.Hour // more than any clock ever ran ahead of UTC
	for at := shown.Add(-early).In(zone); ; {
		start, end := bounds(at)
		_, offset := at.Zone()
		instant := shown.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || instant.Before(end) {
			if instant.Before(start) {
				instant = start
			}
			return instant.UTC()
		}

		at = end
	}
}

// bounds returns the changes of the clocks before and after an instant, as ZoneBounds does,
// but always after it: on the last day of a leap year after 2037 Go answers with the day's
// own beginning. No clocks change on that day.
func bounds(at time.Time) (start, end time.Time) {
	start, end = at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		end = at.Add(day)
	}

	return start, end
}

// zones remembers the zones that were asked for: time.LoadLocation reads a file each
// time. Only names that exist are kept, so it is bounded by their number, and an entry
// never changes.
var zones sync.Map // string to *time.Location

// Zone returns the zone of an IANA name such as Europe/London. An unknown name is a
// flex.Malformed; it is never taken for UTC, nor for the zone of this machine.
func Zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}

	if properName(name) {
		if z, err := time.LoadLocation(name); err == nil {
			zones.Store(name, z)
			return z, nil
		}
	}

	return nil, flex.Fail(
		flex.Malformed,
		`timezone %s is not the name of a time zone: use an IANA name such as "Europe/London"`,
		quote(name),
	)
}

// properName reports whether a name is written as a zone's one name is. Go reads "" as UTC and
// "Local" as this machine's zone; a machine's zone folder holds copies and other files under
// small letters, and as a path finds London also by Europe//London and Europe/./London.
func properName(name string) bool {
	return name != "" && name != "Local" && name[0] >= 'A' && name[0] <= 'Z' &&
		!strings.Contains(name, ".") && path.Clean(name) == name
}
