package wire

import (
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestChargingScheduleBlock_Part: an end that is cut is written as the block's start is.
func TestChargingScheduleBlock_Part(t *testing.T) {
	at := func(text string) time.Time {
		read, err := ParseTime(text)
		if err != nil {
			t.Fatal(err)
		}
		return read.Time
	}

	for _, c := range []struct{ name, start, end, from, to, wantStart, wantEnd string }{
		{"whole", "2025-06-27T22:00:00.250Z", "2025-06-28 07:00+01:00", "2025-06-27T22:00:00.250Z", "2025-06-28T06:00:00Z", "2025-06-27T22:00:00.250Z", "2025-06-28 07:00+01:00"},
		{"its end cut", "2025-06-27T22:00:00.250Z", "2025-06-28T06:00:00Z", "2025-06-27T22:00:00.250Z", "2025-06-28T01:00:00Z", "2025-06-27T22:00:00.250Z", "2025-06-28T01:00:00.000Z"},
		{"its start cut", "2025-06-27 23:00+01", "2025-06-28T06:00:00Z", "2025-06-28T01:30:00Z", "2025-06-28T06:00:00Z", "2025-06-28 02:30+01", "2025-06-28T06:00:00Z"},
		{"both cut, seconds needed", "2025-06-27t12:30-0930", "2025-06-28T06:00:00Z", "2025-06-28T01:30:05Z", "2025-06-28T02:00:00Z", "2025-06-27t16:00:05-0930", "2025-06-27t16:30-0930"},
	} {
		t.Run(c.name, func(t *testing.T) {
			block := ChargingScheduleBlock{c.start, c.end}
			want := ChargingScheduleBlock{c.wantStart, c.wantEnd}
			if got := block.Part(flex.Span{From: at(c.from), To: at(c.to)}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestChargingScheduleBlock_Span: a text that is no instant is refused at either end.
func TestChargingScheduleBlock_Span(t *testing.T) {
	for _, b := range []ChargingScheduleBlock{{"ten", "2025-06-28T06:00:00Z"}, {"2025-06-28T06:00:00Z", "ten"}} {
		if _, err := b.Span(); err == nil {
			t.Errorf("%v is read", b)
		}
	}
}
