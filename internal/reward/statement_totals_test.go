package reward

import (
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// What was less and what was more than usual stand apart, and a correction is no shift of its own.
func TestTotals_Shift(t *testing.T) {
	t.Parallel()

	first, second := flex.FlexEventID{1}, flex.FlexEventID{2}
	line := func(event flex.FlexEventID, energy flex.WattHours) ledger.Booked {
		var b ledger.Booked
		b.Cause.FlexEvent = event
		b.Flex = &energy

		return b
	}

	for name, c := range map[string]struct {
		lines            []ledger.Booked
		less, more, flex flex.WattHours
	}{
		"one less, one more":         {[]ledger.Booked{line(first, -14800), line(second, 14800)}, 14800, 14800, 0},
		"corrected within its sign":  {[]ledger.Booked{line(first, -14800), line(first, 300)}, 14500, 0, -14500},
		"corrected across nothing":   {[]ledger.Booked{line(first, -200), line(first, 500)}, 0, 300, 300},
		"an event between the lines": {[]ledger.Booked{line(first, -200), line(second, 70), line(first, -100)}, 300, 70, -230},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var s Statement
			s.addLines(c.lines)

			if s.Totals.Less != c.less || s.Totals.More != c.more || s.Totals.Flex != c.flex {
				t.Errorf("less %d, more %d, in all %d; want %d, %d, %d", s.Totals.Less, s.Totals.More, s.Totals.Flex, c.less, c.more, c.flex)
			}
		})
	}
}
