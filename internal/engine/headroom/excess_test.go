package headroom

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestProfile_Excess: 6 kW are drawn for five minutes, and later 5 kW, under a feeder within a
// substation. Both exceed 4 kW, the limit of each.
func TestProfile_Excess(t *testing.T) {
	r := Nested(evening, make([]flex.Cap, 3), []int{0, 2, 0})
	at := func(minutes time.Duration) time.Time { return evening.Add(minutes * time.Minute) }
	r.Add(1, []flex.Step{
		{Span: flex.Span{From: at(60), To: at(65)}, Limit: 6000},
		{Span: flex.Span{From: at(70), To: at(80)}, Limit: 5000},
	}, flex.Unbounded, false)

	for _, c := range []struct {
		place    int
		from, to time.Duration // of the limit
		power    flex.Watts
		begins   time.Duration
		ends     time.Duration
		most     flex.Watts
	}{
		{1, 0, 120, 4000, 60, 80, 2000},
		{2, 0, 120, 4000, 60, 80, 2000},
		{1, 0, 120, 5000, 60, 65, 1000},
		{1, 0, 120, 6000, 0, 0, 0},
		{1, 62, 75, 4000, 62, 75, 2000},
		{1, 66, 120, 0, 70, 80, 5000},
		{1, 90, 120, 0, 0, 0, 0},
		{1, -60, 0, 0, 0, 0, 0}, // it is over
	} {
		over, most := r.Excess(c.place, flex.Span{From: at(c.from), To: at(c.to)}, c.power)
		if most != c.most {
			t.Errorf("%+v: %d W", c, most)
		}
		if most > 0 && (!over.From.Equal(at(c.begins)) || !over.To.Equal(at(c.ends))) {
			t.Errorf("%+v: from %s to %s", c, over.From, over.To)
		}
	}
}
