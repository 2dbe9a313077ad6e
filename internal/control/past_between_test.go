package control_test

import (
	"testing"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestPastQuery_Between takes the same number of days in any season: a clock that is put back makes one of them longer,
// and one that is put forward makes one of them shorter.
func TestPastQuery_Between(t *testing.T) {
	for _, first := range []flex.Day{{Year: 2026, Month: 6, Dom: 1}, {Year: 2026, Month: 9, Dom: 1}, {Year: 2027, Month: 2, Dom: 15}} {
		for days, good := range map[int]bool{-1: false, 0: true, 1: true, control.PastDaysMax: true, control.PastDaysMax + 1: false} {
			var q control.PastQuery
			last := first.Add(days)

			if err := q.Between(&first, &last); (err == nil) != good {
				t.Errorf("%s to %s: %v", first, last, err)
			}
		}
	}
}
