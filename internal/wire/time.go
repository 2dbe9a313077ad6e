package wire

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"flexd/internal/flex"
)

// Time is an instant. It is read from ISO 8601 with or without an offset and kept in UTC. It
// is written in UTC with a Z, with a fraction of a second only if it has one. Answers are made
// with At, so that they have none.
type Time struct {
	time.Time
	Offset   time.Duration // from UTC, as it was written
	Zoneless bool          // it was written without an offset, and read as UTC
}

// At is the instant t as answers write it, in whole seconds: fractions that come and go are
// refused by some clients' readers.
func At(t time.Time) Time { return Time{Time: t.Truncate(time.Second)} }

// The forms in which instants are written.
const (
	timeLayout   = "2006-01-02T15:04:05.999999Z07:00" // UTC as Z
	londonLayout = "2006-01-02T15:04:05-07:00"
)

var errTime = errors.New("not an instant of the form 2026-01-15T10:30:00Z")

// ParseTime reads YYYY-MM-DD, a T or a blank, HH:MM, then optionally seconds, a fraction
// and an offset (Z, +01:00, +0100 or +01). Years run from 1970 to 9999, as written and in UTC.
func ParseTime(s string) (Time, error) { return parseTime(s) }

func parseTime[Text ~string | ~[]byte](s Text) (Time, error) {
	if len(s) < 16 || len(s) > 40 {
		return Time{}, errTime
	}
	if s[4] != '-' || s[7] != '-' || s[13] != ':' {
		return Time{}, errTime
	}
	if s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
		return Time{}, errTime
	}

	year := digits(s[:4])
	month := digits(s[5:7])
	day := digits(s[8:10])
	hour := digits(s[11:13])
	minute := digits(s[14:16])
	second := 0
	nanos := 0

	rest := s[16:]
	if len(rest) >= 3 && rest[0] == ':' {
		second, rest = digits(rest[1:3]), rest[3:]
		nanos, rest = fraction(rest)
	}

	offset, zoneless, ok := zone(rest)
	isMonth := year >= 1970 && month >= 1 && month <= 12
	if !ok || !isMonth {
		return Time{}, errTime
	}

	isDay := day >= 1 && day <= daysIn(year, month)
	isMinute := hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59
	isSecond := second >= 0 && second <= 59 && nanos >= 0
	if !isDay || !isMinute || !isSecond {
		return Time{}, errTime
	}

	t := time.Date(
		year,
		time.Month(month),
		day,
		hour,
		minute,
		second,
		nanos,
		time.UTC,
	).Add(-offset)

	if !inYears(t) {
		return Time{}, errTime
	}

	return Time{
		Time:     t,
		Offset:   offset,
		Zoneless: zoneless,
	}, nil
}

// inYears reports whether an instant is in the years 1970 to 9999 of UTC: its offset may lead out of them.
func inYears(t time.Time) bool {
	const last = 253_402_300_799 // 9999-12-31T23:59:59Z
	return t.Unix() >= 0 && t.Unix() <= last
}

// digits reads decimal digits, or returns -1.
func digits[Text ~string | ~[]byte](s Text) int {
	var n int
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}

	return n
}

// fraction reads a fraction of a second in nanoseconds, -1 for a point without digits,
// and returns what follows it. Digits beyond the sixth are dropped, as they are not kept.
func fraction[Text ~string | ~[]byte](s Text) (int, Text) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s
	}

	i, scale := 1, 100_000_000

	var nanos int
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if scale >= 1000 {
			nanos += int(s[i]-'0') * scale
			scale /= 10
		}
	}

	if i == 1 {
		return -1, s
	}

	return nanos, s[i:]
}

// zone reads an offset from UTC: nothing at all, Z, or +HH, +HHMM or +HH:MM.
func zone[Text ~string | ~[]byte](s Text) (offset time.Duration, zoneless, ok bool) {
	if len(s) == 0 {
		return 0, true, true
	}

	if len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') {
		return 0, false, true
	}

	if s[0] != '+' && s[0] != '-' {
		return 0, false, false
	}

	hours, minutes := -1, 0
	switch {
	case len(s) == 3:
		hours = digits(s[1:3])
	case len(s) == 5:
		hours, minutes = digits(s[1:3]), digits(s[3:5])
	case len(s) == 6 && s[3] == ':':
		hours, minutes = digits(s[1:3]), digits(s[4:6])
	}

	if hours < 0 || hours > 23 {
		return 0, false, false
	}
	if minutes < 0 || minutes > 59 {
		return 0, false, false
	}

	offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		offset = -offset
	}

	return offset, false, true
}

func daysIn(year, month int) int {
	if month != 2 {
		return 30 + (month+month/8)%2
	}
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// MarshalJSONTo writes the instant in UTC.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeTime(enc, t.Time.UTC(), timeLayout)
}

// MarshalJSON writes the instant in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.Time.UTC().Format(`"` + timeLayout + `"`)), nil
}

// UnmarshalJSON reads what ParseTime reads; null is the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}

	if len(b) < 2 || b[0] != '"' {
		return errTime
	}

	var err error
	*t, err = parseTime(b[1 : len(b)-1])

	return err
}

// LondonTime is an instant that is written in the UK's time, as dispatch plans are.
//
//openapi:none
type LondonTime struct{ time.Time }

// MarshalJSONTo writes the instant with London's offset.
func (t LondonTime) MarshalJSONTo(enc *jsontext.Encoder) error {
	return writeTime(enc, t.Time.In(flex.London), londonLayout)
}

// MarshalJSON writes the instant with London's offset.
func (t LondonTime) MarshalJSON() ([]byte, error) {
	return []byte(t.Time.In(flex.London).Format(`"` + londonLayout + `"`)), nil
}

// UnmarshalJSON reads what ParseTime reads.
func (t *LondonTime) UnmarshalJSON(b []byte) error {
	var u Time
	err := u.UnmarshalJSON(b)
	t.Time = u.Time
	return err
}

func writeTime(enc *jsontext.Encoder, t time.Time, layout string) error {
	b := append(enc.AvailableBuffer(), '"')
	return enc.WriteValue(append(t.AppendFormat(b, layout), '"'))
}

// WallTime is a time of day on the wall, written as HH:MM:SS.
type WallTime flex.WallTime

// MarshalText writes HH:MM:SS.
func (w WallTime) MarshalText() ([]byte, error) {
	return []byte(flex.WallTime(w).String()), nil
}

// UnmarshalText reads HH:MM or HH:MM:SS. An offset is taken, for JSON Schema's time has one,
// and ignored: the tariff or the site says in which zone the wall is.
func (w *WallTime) UnmarshalText(b []byte) error {
	text := string(b)
	if i := strings.IndexAny(text, "Zz+-"); i > 0 {
		if _, _, ok := zone(text[i:]); ok {
			text = text[:i]
		}
	}

	v, err := flex.ParseWallTime(text)
	*w = WallTime(v)

	return err
}

// Day is a calendar day, written as YYYY-MM-DD.
type Day flex.Day

// IsZero reports whether the day was never set.
func (d Day) IsZero() bool { return d == Day{} }

// MarshalText writes YYYY-MM-DD.
func (d Day) MarshalText() ([]byte, error) {
	return []byte(flex.Day(d).String()), nil
}

// UnmarshalText reads YYYY-MM-DD.
func (d *Day) UnmarshalText(b []byte) error {
	v, err := flex.ParseDay(string(b))
	*d = Day(v)
	return err
}

// formatLike writes an instant in the style of one that ParseTime reads: the same sign
// between date and time, the same precision and the same offset. Seconds are added if
// they are needed.
func formatLike(style string, t time.Time) string {
	const date, clock = len("2006-01-02"), len("15:04")

	read, err := ParseTime(style)
	if err != nil {
		return t.UTC().Format(time.RFC3339)
	}

	t = t.UTC().Add(read.Offset)
	text := t.Format("2006-01-02") + style[date:date+1] + t.Format("15:04")

	rest := style[date+1+clock:] // seconds, fraction, offset
	seconds := strings.HasPrefix(rest, ":")
	if seconds {
		rest = rest[len(":05"):]
	}

	if seconds || t.Second() != 0 {
		text += t.Format(":05")
	}

	// The fraction of a whole second has as many digits as the style's.
	if n := len(rest) - len(strings.TrimLeft(rest, ".0123456789")); n > 0 {
		text += "." + strings.Repeat("0", n-1)
		rest = rest[n:]
	}

	return text + rest
}
