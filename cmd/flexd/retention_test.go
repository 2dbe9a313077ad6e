package main

import (
	"testing"

	"flexd/internal/app"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/operations"
	intake "flexd/internal/reading"
)

// TestRetention_Defaults compares the flags' defaults with those of the packages.
func TestRetention_Defaults(t *testing.T) {
	kept, err := (&retention{462, 90, 30, 90}).read()
	want := app.Retention{Readings: intake.Retention, Records: control.Retention, Deliveries: delivery.Retention, Alerts: operations.AlertRetention}
	if err != nil || kept != want {
		t.Errorf("%+v, want %+v, %v", kept, want, err)
	}
}

func TestRetention_Edges(t *testing.T) {
	for name, c := range map[string]struct {
		flags retention
		good  bool
	}{
		"all at their least":       {retention{462, 90, 7, 7}, true},
		"all at their most":        {retention{3660, 3660, 3660, 3660}, true},
		"readings too short":       {retention{461, 90, 7, 7}, false},
		"records too short":        {retention{462, 89, 7, 7}, false},
		"deliveries too short":     {retention{462, 90, 6, 7}, false},
		"alerts too short":         {retention{462, 90, 7, 6}, false},
		"readings beyond 10 years": {retention{3661, 90, 7, 7}, false},
		"not a time at all":        {retention{-1, 90, 7, 7}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.flags.read()
			if c.good != (err == nil) || err != nil && flex.KindOf(err) != flex.Invalid {
				t.Errorf("%+v: %v", c.flags, err)
			}
		})
	}
}
