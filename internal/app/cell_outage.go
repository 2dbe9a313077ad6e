package app

import (
	"log/slog"
	"time"
)

// sayOutageEvery is how often the log says at most that one cell does not answer.
const sayOutageEvery = time.Minute

// outage says in the log that a cell does not answer, and that it does again. A cell is looked at
// twice a second: what fails within a minute of the latest line is counted.
type outage struct {
	log   *slog.Logger
	cell  string
	said  time.Time // when the latest line was written of a cell that does not answer
	count int       // failures since that line
	open  bool      // whether it was said that the cell does not answer, and not yet that it does
}

// saw takes note of how looking at the cell went.
func (o *outage) saw(now time.Time, err error) {
	if err == nil {
		if o.open {
			o.log.Info("a cell answers again", "cell", o.cell, "failures", o.count)
			o.open, o.count = false, 0
		}

		return
	}

	o.count++
	if !o.said.IsZero() && now.Sub(o.said) < sayOutageEvery {
		return
	}

	o.log.Error(
		"a cell does not answer: its organisations are refused with 503 until it does",
		"cell", o.cell,
		"failures", o.count,
		"err", err,
	)

	o.said, o.open = now, true
	o.count = 0
}
