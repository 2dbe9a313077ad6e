package client

import (
	"fmt"
	"time"
)

// Pence is an amount of money in whole pence; what is credited is positive.
type Pence int64

// Time is an instant. It is written in UTC, with a fraction of a second only if it has one.
type Time struct{ time.Time }

// At returns the instant as bodies carry it.
func At(t time.Time) Time { return Time{t} }

// The forms of instants. The last two are read only: they have no offset and count as UTC.
const (
	utcLayout      = "2006-01-02T15:04:05.999999Z07:00"
	offsetLayout   = "2006-01-02T15:04:05-07:00"
	zonelessLayout = "2006-01-02T15:04:05"
	minuteLayout   = "2006-01-02T15:04"
)

// MarshalJSON writes the instant in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"` + utcLayout + `"`)), nil
}

// UnmarshalJSON reads an instant of RFC 3339. Without an offset it is UTC; null is the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	read, err := readTime(b)
	t.Time = read.UTC()

	return err
}

// LondonTime is an instant that is written with London's offset from UTC, which it keeps when it
// is read. Dispatch plans have such.
type LondonTime struct{ time.Time }

// MarshalJSON writes the instant with the offset that it has: London's in all that was read from flexd.
func (t LondonTime) MarshalJSON() ([]byte, error) {
	return []byte(t.Format(`"` + offsetLayout + `"`)), nil
}

// UnmarshalJSON reads an instant of RFC 3339.
func (t *LondonTime) UnmarshalJSON(b []byte) error {
	var err error
	t.Time, err = readTime(b)
	return err
}

func readTime(b []byte) (time.Time, error) {
	if string(b) == "null" {
		return time.Time{}, nil
	}

	if len(b) < 2 || b[0] != '"' {
		return time.Time{}, fmt.Errorf("%s is not an instant", b)
	}

	text := string(b[1 : len(b)-1])
	for _, layout := range []string{time.RFC3339, zonelessLayout, minuteLayout} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}

	return time.Time{}, fmt.Errorf(
		"%q is not an instant of the form 2026-01-15T10:30:00Z",
		text,
	)
}

// WallTime is a time of day on the clock on the wall, as the time after midnight. It is written
// as HH:MM:SS.
type WallTime time.Duration

// String writes HH:MM:SS.
func (w WallTime) String() string {
	s := int(time.Duration(w) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// MarshalText writes HH:MM:SS.
func (w WallTime) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads HH:MM:SS or HH:MM.
func (w *WallTime) UnmarshalText(b []byte) error {
	midnight := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			*w = WallTime(t.Sub(midnight))
			return nil
		}
	}

	return fmt.Errorf("%q is not a time of the form HH:MM:SS", b)
}

// Day is a calendar day, written as YYYY-MM-DD.
type Day struct {
	Year  int
	Month time.Month
	Dom   int // day of the month
}

// IsZero reports whether the day was never set.
func (d Day) IsZero() bool { return d == Day{} }

// String writes YYYY-MM-DD.
func (d Day) String() string {
	t := time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, time.UTC)
	return t.Format(time.DateOnly)
}

// MarshalText writes YYYY-MM-DD.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads YYYY-MM-DD.
func (d *Day) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return fmt.Errorf("%q is not a day of the form YYYY-MM-DD", b)
	}

	*d = Day{t.Year(), t.Month(), t.Day()}

	return nil
}
