package app

import (
	"log/slog"
	"time"
)

// SetClock has cells say by a test's clock how old their knowledge is.
func SetClock(c *Cells, now func() time.Time) { c.now = now }

// CloseCell closes the database of a cell under it, as if it had gone.
func CloseCell(c *Cells, name string) {
	for _, o := range c.cells {
		if o.name == name {
			o.app.Load().DB.Close()
		}
	}
}

// AppOf is the App of a cell.
func AppOf(c *Cells, name string) *App {
	o, err := c.named(name)
	if err != nil {
		panic(err)
	}
	return o.app.Load()
}

// Outage is what says in the log that a cell does not answer.
func Outage(log *slog.Logger, cell string) (saw func(time.Time, error)) {
	return (&outage{log: log, cell: cell}).saw
}

// WholeLooks is how often the organisations of a cell were read.
func WholeLooks(c *Cells, name string) int {
	o, err := c.named(name)
	if err != nil {
		panic(err)
	}
	return o.snapshot.Load().wholes
}
