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

	NeedsTwo bool      // whether two people end it
	AskedBy  string    // who asked for its end
	AskedAt  time.Time // zero if nobody has
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

// HaltNeedsTwo says that two people end the halt that there is.
func (all *All) HaltNeedsTwo(ctx context.Context) error {
	_, err := all.exec(ctx, `UPDATE halt SET needs_two = 1`)
	return err
}

// AskResume notes who asks for the halt's end, in place of whoever did before.
func (all *All) AskResume(ctx context.Context, who string) error {
	_, err := all.exec(ctx, `UPDATE halt SET asked_by = $1, asked_at = $2`, who, micros(all.now))
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
		var two int
		err = s.Scan(instant{&h.At}, &h.Who, &h.Reason, &two, &h.AskedBy, instant{&h.AskedAt})
		h.NeedsTwo = two == 1
		return h, err
	},
		`SELECT at, who, reason, needs_two, asked_by, asked_at FROM halt`)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}
