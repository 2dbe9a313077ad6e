package flex_test

import (
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
