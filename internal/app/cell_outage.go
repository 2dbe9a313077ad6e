package app

import (
	"log/slog"
	"time"
)

// sayOutageEvery is the least time between two log lines about a cell that does not answer.
const sayOutageEvery = time.Minute

// outage logs that a cell does not answer, and when it answers again. A cell is read twice a
// second: failures within a minute of the latest line are counted in the next.
type outage struct {
	log   *slog.Logger
	cell  string
	said  time.Time // when the latest line about a failure was logged
	count int       // failures since that line
	open  bool      // whether a failure was logged, and the recovery not yet
}

// saw records the result of reading the cell.
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
