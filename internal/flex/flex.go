package flex

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Quantities are integers in the smallest unit that the trade settles in.
type (
	// Watts is a power; positive draws from the grid.
	Watts int64
	// WattHours is an energy; positive draws from the grid.
	WattHours int64
	// Pence is money in whole pence.
	Pence int64
	// MicroPounds is money in millionths of a pound, where a penny is too coarse.
	MicroPounds int64
	// Price is a price of energy in millionths of a pound per megawatt-hour, so
	// that a product of Price and WattHours in MicroPounds divides by 1,000,000.
	Price int64
)

// FromKW converts kilowatts to the nearest whole watt.
func FromKW(kw float64) Watts { return Watts(whole(kw * 1000)) }

// FromKWh converts kilowatt-hours to the nearest whole watt-hour.
func FromKWh(kwh float64) WattHours { return WattHours(whole(kwh * 1000)) }

// FromGBPPerMWh converts a market price to the nearest millionth of a pound.
func FromGBPPerMWh(p float64) Price { return Price(whole(p * 1e6)) }

// whole rounds to the nearest whole number, and to the largest or smallest that there is where that is beyond them:
// without it a number that is too large could become any other, of either sign.
func whole(f float64) int64 {
	f = math.Round(f)

	if f >= math.MaxInt64 { // as a float64 it is 1 more
		return math.MaxInt64
	}
	if f <= math.MinInt64 {
		return math.MinInt64
	}

	return int64(f)
}

// KW returns the power in kilowatts.
func (w Watts) KW() float64 { return float64(w) / 1000 }

// For returns the energy that the power moves in d, rounded down to a watt-hour.
func (w Watts) For(d time.Duration) WattHours {
	return WattHours(int64(w) * int64(d/time.Second) / 3600)
}

// KWh returns the energy in kilowatt-hours.
func (e WattHours) KWh() float64 { return float64(e) / 1000 }

// GBPPerMWh returns the price in pounds per megawatt-hour.
func (p Price) GBPPerMWh() float64 { return float64(p) / 1e6 }

// Of returns the cost of energy e at the price, rounded half away from zero.
func (p Price) Of(e WattHours) MicroPounds {
	return MicroPounds(divRound(int64(p)*int64(e), 1_000_000))
}

// GBP returns the amount in pounds.
func (m MicroPounds) GBP() float64 { return float64(m) / 1e6 }

// Pence returns the amount in whole pence, rounded half away from zero.
func (m MicroPounds) Pence() Pence { return Pence(divRound(int64(m), 10_000)) }

// String writes pence as pounds with two decimals.
func (p Pence) String() string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}

	return fmt.Sprintf("%s£%d.%02d", sign, p/100, p%100)
}

// divRound divides by a positive d and rounds half away from zero.
func divRound(n, d int64) int64 {
	if n < 0 {
		return -((-n + d/2) / d)
	}
	return (n + d/2) / d
}

// Span is the half-open time [From, To).
type Span struct{ From, To time.Time }

// Empty reports whether the span holds no instant.
func (s Span) Empty() bool { return !s.From.Before(s.To) }

// Len returns the span's length, never negative.
func (s Span) Len() time.Duration { return max(0, s.To.Sub(s.From)) }

// Contains reports whether the instant lies in the span.
func (s Span) Contains(at time.Time) bool {
	return !at.Before(s.From) && at.Before(s.To)
}

// Meet returns the part that two spans share, which may be empty.
func (s Span) Meet(o Span) Span {
	if o.From.After(s.From) {
		s.From = o.From
	}
	if o.To.Before(s.To) {
		s.To = o.To
	}

	return s
}

// Personal is text about a person. It never prints, logs or marshals as itself; ask for
// it by name with Reveal.
type Personal string

// Reveal returns the text, for the store and for the person's own organisation.
func (p Personal) Reveal() string { return string(p) }

// String hides the text.
func (p Personal) String() string { return "[redacted]" }

// GoString hides the text.
func (p Personal) GoString() string { return "[redacted]" }

// MarshalText hides the text, in JSON and in logs alike.
func (p Personal) MarshalText() ([]byte, error) {
	return []byte("[redacted]"), nil
}

// Scan refuses to read the text as a database has it, which is sealed: package store opens it.
func (p *Personal) Scan(any) error {
	return errors.New("a text about a person is read through opened of package store")
}

// Secret is a password, a token or a key. It hides itself as Personal does.
type Secret string

// Reveal returns the secret, for the one use that it was given for.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return "[redacted]" }

// GoString hides the secret.
func (s Secret) GoString() string { return "[redacted]" }

// MarshalText hides the secret, in JSON and in logs alike.
func (s Secret) MarshalText() ([]byte, error) {
	return []byte("[redacted]"), nil
}

// WallTime is a time of day on a clock on the wall, as the time after midnight, without a
// zone.
type WallTime time.Duration

// Count writes a number of things, whose plural has an s: "1 meter", "2 meters".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// ParseWallTime reads HH:MM or HH:MM:SS, which may have a fraction.
func ParseWallTime(s string) (WallTime, error) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return WallTime(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))), nil
		}
	}

	return 0, fmt.Errorf(
		"%s is not a time of the form HH:MM or HH:MM:SS",
		strconv.Quote(s),
	)
}

// String writes the time as HH:MM:SS.
func (w WallTime) String() string {
	s := int(time.Duration(w) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}
