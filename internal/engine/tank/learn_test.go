package tank_test

import (
	"testing"

	"flexd/internal/engine/tank"
)

// TestLearn has a household that draws 1,500 Wh at seven each day and 3,000 at eight in the evening on one day: the mean is
// expected, and the most is kept for each time at which it may come.
func TestLearn(t *testing.T) {
	var assumed tank.Pattern
	for s := range tank.DaySlots {
		assumed.Used[s], assumed.Spare[s] = 100, 1000
	}

	days := make([]tank.Day, 4)
	for d := range days {
		days[d][14] = 1500
	}
	days[2][40] = 3000
	days[3][20] = -1 // not known

	p := tank.Learn(&assumed, days)
	if p.Days != 4 || p.Used[14] != (4*1500+100)/5 || p.Used[40] != (3000+100)/5 || p.Used[20] != 100/4 {
		t.Errorf("expects %v", p.Used)
	}
	// The end of slot 13 is the beginning of slot 14; one who is half an hour early or late draws beside it.
	for s, want := range map[int]int{10: 200, 11: 1800, 12: 1800, 13: 1800, 14: 1800, 15: 200, 36: 200, 37: 3600, 39: 3600, 40: 3600, 41: 200} {
		if p.Spare[s] != want {
			t.Errorf("keeps %d at the end of half-hour %d, not %d", p.Spare[s], s, want)
		}
	}

	if got := tank.Learn(&assumed, nil); got != assumed {
		t.Errorf("learned of nothing: %+v", got)
	}
}
