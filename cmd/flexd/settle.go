package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/reward"
)

// settleCommand is `flexd settle`.
type settleCommand struct {
	Runs  settleRuns  `cmd:"" help:"The latest settlement runs, newest first."`
	Again settleAgain `cmd:"" help:"Settle flex events again, with the data that is known now or was known at an earlier instant. Without --post nothing is booked, and the run can only be compared. Example: flexd settle again --org acme --from 2026-01-01 --to 2026-01-31"`
	Diff  settleDiff  `cmd:"" help:"The differences between two settlement runs."`

	BaselineError settleBaseline `cmd:"" name:"baseline-error" help:"The error of each method's baseline on days on which nothing was requested."`
}

type settleRuns struct {
	ofOrg
	Limit listLimit `help:"How many." default:"20"`
	JSON  bool      `help:"Print as JSON." name:"json"`
}

type runRow struct {
	ID      flex.RunID `json:"run_id"`
	Kind    string     `json:"kind"`
	KnownAt time.Time  `json:"known_at"`
	Events  int        `json:"events"`
	Hash    string     `json:"inputs_sha256"`
}

// Run lists the runs.
func (s *settleRuns) Run(ctx context.Context, c console) error {
	h, org, err := s.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	runs, err := h.Reward.Runs(ctx, org.ID, int(s.Limit))
	if err != nil {
		return err
	}

	rows := make([]runRow, len(runs))
	for i, r := range runs {
		rows[i] = runRow{
			r.ID,
			string(r.Kind),
			r.KnownAt,
			r.Events,
			r.Hash.String(),
		}
	}

	return list(
		c,
		s.JSON,
		rows,
		"RUN\tKIND\tKNOWN AT\tEVENTS\tINPUTS",
		func(r runRow) []any {
			return []any{
				r.ID,
				r.Kind,
				r.KnownAt,
				r.Events,
				fmt.Sprintf("%.16s", r.Hash),
			}
		},
	)
}

type settleAgain struct {
	ofOrg
	form
	From    string    `help:"First London day, YYYY-MM-DD." required:"" placeholder:"DAY"`
	To      string    `help:"Last London day, YYYY-MM-DD." required:"" placeholder:"DAY"`
	Site    string    `help:"One site alone." placeholder:"ID"`
	Post    bool      `help:"Book the differences, also of sessions, to repair the books. Safe to run twice."`
	KnownAt time.Time `help:"Use only data that was known at this instant, RFC 3339; now if not given." placeholder:"TIME"`
}

// read reads the flags.
func (s *settleAgain) read() (reward.Resettlement, error) {
	var events reward.Resettlement
	events.KnownAt = s.KnownAt

	var err error
	events.From, err = readDay("--from", s.From)
	if err != nil {
		return events, err
	}

	events.To, err = readDay("--to", s.To)
	if err != nil {
		return events, err
	}
	if events.To.Start().Before(events.From.Start()) {
		return events, flex.Fail(
			flex.Invalid,
			"--to %s is before --from %s",
			events.To,
			events.From,
		)
	}

	if s.Site != "" {
		if err := events.Site.UnmarshalText([]byte(s.Site)); err != nil {
			return events, flex.Fail(flex.Invalid, "--site: %v", err)
		}
	}

	return events, nil
}

// Run settles again.
func (s *settleAgain) Run(ctx context.Context, c console) error {
	events, err := s.read()
	if err != nil {
		return err
	}

	if s.Post {
		return s.repair(ctx, c, events)
	}

	h, org, err := s.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	run, err := h.Reward.Resettle(ctx, org.ID, events)
	if err != nil {
		return err
	}

	return s.print(
		c,
		fields{
			"run_id":        run.ID,
			"events":        run.Events,
			"inputs_sha256": run.Hash.String(),
		},
		"run     %s\nevents  %d\ninputs  %s\n",
		run.ID,
		run.Events,
		run.Hash,
	)
}

// repair settles again and posts the changes, with an audit entry.
func (s *settleAgain) repair(
	ctx context.Context,
	c console,
	events reward.Resettlement,
) error {
	var r reward.RepairResult
	started := false

	err := s.actOnWith(
		ctx,
		flex.AuditEntry{
			Act:     "settle again and post",
			Subject: s.Site,
			Detail:  fmt.Sprintf("%s to %s", events.From, events.To),
		},
		func(h *app.App, org flex.Org) error {
			started = true

			var err error
			r, err = h.Reward.Repair(ctx, org.ID, events)
			return err
		},
	)
	if !started {
		return err
	}

	return errors.Join(err, s.printRepaired(c, r))
}

// printRepaired prints the number of records that a repair checked and posted.
func (f form) printRepaired(c console, r reward.RepairResult) error {
	return f.print(
		c,
		fields{
			"events":         r.Events,
			"sessions":       r.Sessions,
			"transactions":   r.Transactions,
			"credited_pence": r.Credited,
		},
		"events        %d\nsessions      %d\ntransactions  %d\ncredited      %s\n",
		r.Events,
		r.Sessions,
		r.Transactions,
		r.Credited,
	)
}

type settleDiff struct {
	ofOrg
	Before flex.RunID `arg:"" help:"Id of one run."`
	After  flex.RunID `arg:"" help:"Id of the other run."`
	JSON   bool       `help:"Print as JSON." name:"json"`
}

// Run compares.
func (s *settleDiff) Run(ctx context.Context, c console) error {
	h, org, err := s.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	changes, err := h.Reward.Compare(ctx, org.ID, s.Before, s.After)
	if err != nil {
		return err
	}

	if s.JSON {
		rows := make([]map[string]string, len(changes))
		for i, d := range changes {
			rows[i] = map[string]string{
				"flex_event_id": d.Event.String(),
				"what":          d.What,
				"before":        d.Before,
				"after":         d.After,
			}
		}

		return c.json(rows)
	}

	var last flex.FlexEventID
	for _, d := range changes {
		if d.Event != last {
			fmt.Fprintf(c.out, "flex event %s\n", d.Event)
			last = d.Event
		}

		fmt.Fprintf(
			c.out,
			"  %s\n    - %s\n    + %s\n",
			d.What,
			d.Before,
			d.After,
		)
	}

	if len(changes) == 0 {
		fmt.Fprintln(c.out, "The two runs say the same.")
	}

	return nil
}
