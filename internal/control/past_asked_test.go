package control_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// TestPast_Asked has a dispatch be replaced in its second half: the newer counts there, and both stay in the record.
func TestPast_Asked(t *testing.T) {
	now := at("2026-01-15T00:00:00Z")
	order := func(issued, from, to int, power flex.Watts) control.PastDispatch {
		minute := func(m int) time.Time { return now.Add(time.Duration(m) * time.Minute) }
		return control.PastDispatch{IssuedAt: minute(issued), Span: flex.Span{From: minute(from), To: minute(to)}, Power: power}
	}

	p := control.Past{Dispatches: []control.PastDispatch{order(0, 30, 60, 5000), order(45, 45, 60, 0), order(0, 90, 120, -2000)}}
	want := []control.PastDispatch{order(0, 30, 45, 5000), order(45, 45, 60, 0), order(0, 90, 120, -2000)}
	if got := p.Asked(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if len(p.Dispatches) != 3 || p.Dispatches[0].To != want[1].To {
		t.Errorf("the record was changed: %+v", p.Dispatches)
	}
}
