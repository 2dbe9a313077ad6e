package flex_test

import (
	"math"
	"testing"

	"flexd/internal/flex"
)

func TestParseWallTime(t *testing.T) {
	for text, want := range map[string]string{"07:00": "07:00:00", "23:59:59": "23:59:59", "06:30:15.5": "06:30:15", "24:00": "", "7": "", "": "", "07:60": ""} {
		w, err := flex.ParseWallTime(text)
		if (err == nil) != (want != "") || err == nil && w.String() != want {
			t.Errorf("%q is %v, %v", text, w, err)
		}
	}
}

// A number that is too large becomes the largest that there is, and never one of the other sign.
func TestFrom_BeyondAllNumbers(t *testing.T) {
	for _, c := range []struct {
		from float64
		want int64
	}{
		{1e300, math.MaxInt64},
		{-1e300, math.MinInt64},
		{math.Inf(1), math.MaxInt64},
		{1e16, math.MaxInt64},
		{-1e16, math.MinInt64},
		{9e15, 9_000_000_000_000_000_000},
		{1.0004, 1000},
		{-1.0005, -1001},
	} {
		if got := flex.FromKW(c.from); int64(got) != c.want {
			t.Errorf("%v kW are %d W, want %d", c.from, got, c.want)
		}
		if got := flex.FromKWh(c.from); int64(got) != c.want {
			t.Errorf("%v kWh are %d Wh, want %d", c.from, got, c.want)
		}
	}
}
