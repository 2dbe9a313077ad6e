package app_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"flexd/internal/app"
)

// A cell that is down for hours, or comes and goes, is in the log once as it goes down and
// once a minute at most, with how often it failed; and once as it answers again.
func TestOutage_Lines(t *testing.T) {
	const every = 500 * time.Millisecond
	down := func(int) bool { return true }

	for name, c := range map[string]struct {
		down           func(look int) bool
		errors, agains int
	}{
		"never":          {func(int) bool { return false }, 0, 0},
		"for an hour":    {down, 60, 0},
		"once":           {func(look int) bool { return look == 7 }, 1, 1},
		"for 10 seconds": {func(look int) bool { return look < 20 }, 1, 1},
		"to and fro":     {func(look int) bool { return look%2 == 0 }, 60, 60},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			saw := app.Outage(slog.New(slog.NewTextHandler(&log, nil)), "north")
			failures := 0

			for look := range int(time.Hour / every) {
				var err error
				if c.down(look) {
					err = errors.New("connection refused")
					failures++
				}
				saw(time.Unix(0, 0).Add(time.Duration(look)*every), err)
			}

			bad, again := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "answers again")
			if bad != c.errors || again != c.agains {
				t.Errorf("%d lines of a cell that is down and %d of one that answers, want %d and %d, of %d failures", bad, again, c.errors, c.agains, failures)
			}
			if name == "for an hour" && !strings.Contains(log.String(), "cell=north failures=120 ") {
				t.Errorf("no line says of how many failures it is: %.500s", &log)
			}
		})
	}
}
