package instruct

import (
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// marks returns readings of a register that shows 1,234 kWh at first. The arguments are pairs
// of minutes after the evening's instant and Wh.
func marks(pairs ...int) (out []flex.RegisterMark) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, flex.RegisterMark{At: evening.Add(time.Duration(pairs[i]) * time.Minute), Energy: flex.Micro(1_234_000_000 + pairs[i+1]*1000)})
	}
	return out
}

func minutesOf(from, to int) flex.Span {
	return flex.Span{From: evening.Add(time.Duration(from) * time.Minute), To: evening.Add(time.Duration(to) * time.Minute)}
}

func TestMetered(t *testing.T) {
	for _, c := range []struct {
		name  string
		marks []flex.RegisterMark
		from  int
		to    int
		want  charge.Joules
		given bool
	}{
		{"a minute between two readings", marks(0, 0, 5, 500), 2, 3, 100 * 3600, true},
		{"over a reading", marks(0, 0, 5, 500, 6, 520), 4, 6, 120 * 3600, true},
		{"nothing drawn", marks(0, 0, 5, 0), 0, 5, 0, true},
		{"before the first", marks(5, 0, 10, 500), 4, 6, 0, false},
		{"after the last", marks(5, 0, 10, 500), 9, 11, 0, false},
		{"readings too far apart", marks(0, 0, 11, 500), 2, 3, 0, false},
		{"beside readings too far apart", marks(0, 0, 11, 500, 12, 600), 11, 12, 100 * 3600, true},
		{"a register that fell", marks(0, 900, 5, 500), 2, 3, 0, false},
		{"before a register fell", marks(0, 0, 5, 500, 6, 0), 2, 3, 100 * 3600, true},
		{"one reading", marks(0, 0), 0, 1, 0, false},
		{"none", nil, 0, 1, 0, false},
	} {
		if got, given := Metered(c.marks, minutesOf(c.from, c.to)); given != c.given || given && got != c.want {
			t.Errorf("%s: %d, %v; not %d, %v", c.name, got, given, c.want, c.given)
		}
	}
}

// TestShare measures a car of 6 kW, which draws 100 Wh a minute and is to draw nothing.
func TestShare(t *testing.T) {
	on := []flex.Step{{Span: minutesOf(0, 600), Limit: flex.NoLimit}}
	for _, c := range []struct {
		name  string
		marks []flex.RegisterMark
		want  Percent
		known bool
	}{
		{"it follows", marks(1, 1, 6, 1), 100, true},
		{"it charges on", marks(1, 1, 6, 501), 0, true},
		{"it follows half way", marks(1, 1, 3, 201, 6, 251), 50, true},
		{"it draws more", marks(1, 1, 6, 1001), -100, true},
		{"its register fell", marks(1, 1, 6, -100_001), 0, false},
		{"its register fell and rose", marks(1, 100_001, 3, 1, 6, 100_001), 0, false},
		{"half a minute", marks(1, 1, 1, 1), 0, false},
		{"a register of 100 Wh, five minutes", marks(1, 100, 6, 600), 0, false},
		{"a register of 100 Wh, ten minutes", marks(1, 100, 11, 1100), 0, true},
		{"a register of 1 kWh", marks(1, 0, 11, 1000), 0, false},
		{"one reading", marks(1, 1), 0, false},
	} {
		if got, known := Share(c.marks, on, nil, 6000); got != c.want || known != c.known {
			t.Errorf("%s: %d %%, %v; not %d, %v", c.name, got, known, c.want, c.known)
		}
	}

	idle := marks(1, 1, 6, 1)
	if _, known := Share(idle, nil, nil, 6000); known {
		t.Error("of a car that is asked for nothing something is known")
	}
}
