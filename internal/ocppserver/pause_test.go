package ocppserver

import (
	"testing"
	"time"
)

// What becomes due while a round is under way, after the round looked at it, is done at once:
// the charger is not left alone for a minute.
func TestPause_DueMeanwhile(t *testing.T) {
	began := time.Date(2026, 4, 14, 22, 10, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		arrived, reportAt time.Time
		took              time.Duration // by the round
		want              time.Duration
	}{
		"an event that waits":             {began, began, time.Second, 4*time.Second + time.Millisecond},
		"an event whose wait is over":     {began, began, 6 * time.Second, time.Millisecond},
		"an event, and the clock jumps":   {began, began, 3 * time.Hour, time.Millisecond},
		"readings that become due":        {began.Add(time.Hour), began.Add(time.Second), 2 * time.Second, time.Millisecond},
		"readings that are not due":       {began.Add(time.Hour), began.Add(9 * time.Second), 2 * time.Second, 7*time.Second + time.Millisecond},
		"what was due before it is done":  {began.Add(-time.Hour), began.Add(-time.Second), time.Second, synchroniseMax + time.Millisecond},
		"nothing within the longest time": {began.Add(time.Hour), began.Add(time.Hour), time.Second, synchroniseMax + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Bridge{}

			b.Now = func() time.Time { return began.Add(tt.took) }
			b.Timing.Late = 5 * time.Second
			c := &charger{b: b, reportAt: tt.reportAt, reports: []report{{}}}
			if tt.reportAt.Equal(began) {
				c.reports = nil
			}

			c.late = append(c.late, lateEvent{Arrived: tt.arrived})
			if got := c.pause(began); got != tt.want {
				t.Errorf("left alone for %v, want %v", got, tt.want)
			}
		})
	}
}
