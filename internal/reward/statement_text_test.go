package reward

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// A line about an event that is not paid says how many days there are to compare with.
func TestEventText_FewDays(t *testing.T) {
	t.Parallel()

	day := time.Date(2027, 3, 26, 18, 0, 0, 0, time.UTC)
	for used, want := range map[int]string{
		0: "; there is no similar day before to compare with, so that nothing is paid for it",
		1: "; there is only 1 similar day before to compare with, too few to be paid for",
		4: "; there are only 4 similar days before to compare with, too few to be paid for",
	} {
		r := settle.Result{
			Method:  settle.Mean,
			Quality: settle.Insufficient,
			Used:    make([]flex.Day, used),
			Flex:    -151,
		}

		text := eventText(&r, flex.Span{From: day, To: day.Add(flex.HalfHour)})
		if !strings.HasSuffix(text, want) {
			t.Errorf("%d days: got %q, want an end of %q", used, text, want)
		}
	}
}
