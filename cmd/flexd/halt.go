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
	Two    bool   `help:"Two people end it: one asks for its end, another ends it within an hour."`
}

// Run stops all pushes.
func (o *halt) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	halt := h.Push.Halt
	if o.Two {
		halt = h.Push.HaltForTwo
	}

	err = h.Access.Act(ctx, records.Act{Who: commandLine, Act: "halt pushes", Detail: o.Reason}, func() error {
		return halt(ctx, commandLine, o.Reason)
	})
	if err == nil {
		fmt.Fprintln(c.out, "No push leaves until flexd resume. Chargers go on with the schedules that they have.")
	}

	return err
}

// resume is `flexd resume`.
type resume struct {
	store
	Alone bool `help:"End a halt that two people end without the second. The audit log says so."`
}

// Run lets pushes leave again.
func (o *resume) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	ended := true
	err = h.Access.ActWithDetail(ctx, records.Act{Who: commandLine, Act: "resume pushes"}, func() (detail string, err error) {
		if o.Alone {
			return "alone", h.Push.Resume(ctx)
		}

		ended, err = h.Push.ResumeBy(ctx, commandLine)
		return "", err
	})
	if err != nil {
		return err
	}

	said := "Pushes leave again: of each asset the newest schedule."
	if !ended {
		said = "The end of the halt is asked for. Somebody else ends it, within an hour: in the console, or as another user here."
	}

	_, err = fmt.Fprintln(c.out, said)
	return err
}
