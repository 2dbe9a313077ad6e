package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// Halt says that nothing is sent to anybody, who has stopped it and why.
type Halt struct {
	At     time.Time // by the true clock
	Who    string
	Reason string
}

// Halt stops all pushes on every process: no attempt begins after this transaction. It is a
// Conflict when they are halted already.
func (all *All) Halt(ctx context.Context, who, reason string) error {
	n, err := all.exec(ctx, `INSERT INTO halt (id, at, who, reason) VALUES (1, $1, $2, $3) ON CONFLICT (id) DO NOTHING`, micros(all.now), who, reason)
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "pushes are halted already")
	}
	all.Wake(WakeWatch)
	return err
}

// Resume has what was held sent, as far as it still lives. It is a Conflict when pushes are
// not halted.
func (all *All) Resume(ctx context.Context) error {
	n, err := all.exec(ctx, `DELETE FROM halt`)
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "pushes are not halted")
	}
	all.Wake(WakePush)
	all.Wake(WakeWatch)
	return err
}

// Halted returns who has halted all pushes, or nil while they go out.
func (all *All) Halted(ctx context.Context) (*Halt, error) {
	found, err := rows(ctx, all.conn, func(s scanner) (h Halt, err error) {
		err = s.Scan(instant{&h.At}, &h.Who, &h.Reason)
		return h, err
	},
		`SELECT at, who, reason FROM halt`)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}
