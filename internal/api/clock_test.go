package api

import (
	"testing"
	"time"

	"flexd/internal/wire"
)

// A time of day is the next one that London's clocks show, in the nights of their change too.
func TestTurnTo_LocalTime(t *testing.T) {
	at := wire.WallTime(18 * time.Hour)
	early := wire.WallTime(90 * time.Minute)

	for _, c := range []struct {
		now, want string
		wall      wire.WallTime
	}{
		{"2027-01-20T06:00:00Z", "2027-01-20T18:00:00Z", at},
		{"2027-01-20T18:00:00Z", "2027-01-21T18:00:00Z", at},
		{"2027-03-27T19:00:00Z", "2027-03-28T17:00:00Z", at},
		{"2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", early}, // 01:30 is skipped: the end of the gap
		{"2027-10-31T00:00:00Z", "2027-10-31T00:30:00Z", early}, // the first of the two
		{"2027-10-31T00:40:00Z", "2027-11-01T01:30:00Z", early},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}

		got, err := turnTo(wire.ClockRequest{LocalTime: &c.wall}, now)
		if err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("from %s: %v, %v, want %s", c.now, got.UTC(), err, c.want)
		}
	}

	for _, in := range []wire.ClockRequest{{}, {Advance: "PT1H", LocalTime: &at}, {Now: wire.At(time.Now()), LocalTime: &at}} {
		if got, err := turnTo(in, time.Now()); err == nil {
			t.Errorf("%+v: turned to %v", in, got)
		}
	}
}

func TestISODuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"PT8H": 8 * time.Hour, "P1D": 24 * time.Hour, "P1DT1H30M15S": 25*time.Hour + 30*time.Minute + 15*time.Second,
		"PT0S": 0, "PT90M": 90 * time.Minute,
	} {
		if got, ok := isoDuration(s); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "P", "PT", "8H", "P1W", "P1M", "P1Y", "PT1.5H", "-PT1H", "PT-1H", "P1DT", "pt8h", "PT8H ", "P1000D"} {
		if got, ok := isoDuration(s); ok {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}
