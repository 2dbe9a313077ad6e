package main

import (
	"context"
	"fmt"

	records "flexd/internal/store"
)

// halt is `flexd halt`.
type halt struct {
	store
	Reason string `arg:"" help:"Why, for whoever looks next."`
}

// Run stops all pushes.
func (o *halt) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	err = h.Access.Act(ctx, records.Act{Who: commandLine, Act: "halt pushes", Detail: o.Reason}, func() error {
		return h.Push.Halt(ctx, commandLine, o.Reason)
	})
	if err == nil {
		fmt.Fprintln(c.out, "No push leaves until flexd resume. Chargers go on with the schedules that they have.")
	}

	return err
}

// resume is `flexd resume`.
type resume struct{ store }

// Run lets pushes leave again.
func (o *resume) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	err = h.Access.Act(ctx, records.Act{Who: commandLine, Act: "resume pushes"}, func() error { return h.Push.Resume(ctx) })
	if err == nil {
		fmt.Fprintln(c.out, "Pushes leave again: of each asset the newest schedule.")
	}

	return err
}
