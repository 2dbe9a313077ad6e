package main

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/reading"
	records "flexd/internal/store"
)

// readings is `flexd readings`.
type readings struct {
	Held    readingsHeld    `cmd:"" help:"List readings that no device or connection can have measured. They do not count until they are released. Example: flexd readings held --org Acme"`
	Release readingsRelease `cmd:"" help:"Make a reading that is held back count. Example: flexd readings release ID --meter-replaced"`
	Discard readingsDiscard `cmd:"" help:"Decide that a reading that is held back never counts. Example: flexd readings discard ID"`
}

type readingsHeld struct {
	store
	Org     string    `help:"The organisation's name." required:"" placeholder:"NAME"`
	Site    string    `help:"Only those of a site, by its id."`
	Decided bool      `help:"Those that were released or discarded, in place of those that wait."`
	Limit   listLimit `help:"How many at most, the newest first." default:"100"`
	Offset  int       `help:"How many to skip, from the newest on."`
	JSON    bool      `help:"Print as JSON." name:"json"`
}

// heldRow is a reading that waits for a decision, as it is printed.
type heldRow struct {
	ID       flex.HeldID  `json:"id"`
	AssetID  flex.AssetID `json:"asset_id"`
	Label    flex.Label   `json:"label"`
	From     time.Time    `json:"start_timestamp"`
	To       time.Time    `json:"end_timestamp"`
	Value    float64      `json:"value"`
	Reason   string       `json:"reason"`
	Detail   string       `json:"detail"`
	HeldAt   time.Time    `json:"held_at"`
	Decision string       `json:"decision,omitempty"`
}

func heldRowOf(h flex.HeldReading) heldRow {
	return heldRow{
		h.ID,
		h.AssetID,
		h.Label,
		h.From,
		h.To,
		float64(h.Value) / 1e6,
		h.Reason,
		h.Detail,
		h.HeldAt,
		h.Decision,
	}
}

// Run lists the readings.
func (o *readingsHeld) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	q := reading.HeldQuery{
		State:  flex.HeldWaiting,
		Limit:  int(o.Limit),
		Offset: o.Offset,
	}

	if o.Decided {
		q.State = flex.HeldDecided
	}

	if o.Offset < 0 {
		return flex.Fail(flex.Invalid, "--offset is at least 0")
	}

	if o.Site != "" {
		q.Site, err = siteID(o.Site)
	}

	if err != nil {
		return err
	}

	return o.show(ctx, c, h, q)
}

// show prints the requested readings.
func (o *readingsHeld) show(
	ctx context.Context,
	c console,
	h *app.App,
	q reading.HeldQuery,
) error {
	var org flex.Org
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = orgNamed(ctx, all, o.Org)
		return err
	})
	if err != nil {
		return err
	}

	q.Org = org.ID
	page, total, err := h.Reading.Held(ctx, q)
	if err != nil {
		return err
	}

	rows := make([]heldRow, len(page))
	for i, r := range page {
		rows[i] = heldRowOf(r)
	}

	if o.JSON {
		return c.json(map[string]any{"total": total, "readings": rows})
	}

	return c.heldTable(rows, total)
}

func (c console) heldTable(rows []heldRow, total int) error {
	err := table(
		c,
		rows,
		"ID\tASSET\tFROM\tTO\tVALUE\tWHY\tDECISION",
		func(r heldRow) []any {
			return []any{
				r.ID,
				r.AssetID,
				r.From,
				r.To,
				r.Value,
				r.Detail,
				r.Decision,
			}
		},
	)

	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(c.out, "%d of %d\n", len(rows), total)

	return err
}

type readingsRelease struct {
	store
	ID            string `arg:"" help:"Id of the reading that is held back."`
	MeterReplaced bool   `help:"The meter was replaced or reset, so its register started again with this reading."`
	JSON          bool   `help:"Print as JSON." name:"json"`
}

// Run releases the reading.
func (o *readingsRelease) Run(ctx context.Context, c console) error {
	return o.decide(
		ctx,
		c,
		o.ID,
		"release reading",
		o.JSON,
		func(h *app.App, org flex.OrgID, id flex.HeldID) (flex.HeldReading, error) {
			return h.Reading.Release(ctx, org, id, o.MeterReplaced)
		},
	)
}

type readingsDiscard struct {
	store
	ID   string `arg:"" help:"Id of the reading that is held back."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// Run discards the reading.
func (o *readingsDiscard) Run(ctx context.Context, c console) error {
	return o.decide(
		ctx,
		c,
		o.ID,
		"discard reading",
		o.JSON,
		func(h *app.App, org flex.OrgID, id flex.HeldID) (flex.HeldReading, error) {
			return h.Reading.Discard(ctx, org, id)
		},
	)
}

// decide finds whose the reading is, and writes the decision on it and its audit entry.
func (s *store) decide(ctx context.Context, c console, text, act string, asJSON bool,
	do func(*app.App, flex.OrgID, flex.HeldID) (flex.HeldReading, error),
) error {
	var id flex.HeldID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return flex.Fail(
			flex.Invalid,
			"%q is not the id of a held reading: flexd readings held lists them",
			text,
		)
	}

	h, err := s.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	org, err := heldOrg(ctx, h, id)
	if err != nil {
		return err
	}

	var reading flex.HeldReading
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     act,
			Subject: text,
		},
		func() error {
			var err error
			reading, err = do(h, org, id)
			return err
		},
	)

	if err != nil {
		return err
	}

	return c.printDecision(reading, asJSON)
}

// heldOrg returns the organisation of a reading that waits for a decision.
func heldOrg(
	ctx context.Context,
	h *app.App,
	id flex.HeldID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = all.HeldOrg(ctx, id)
		return err
	})

	return org, err
}

func (c console) printDecision(decided flex.HeldReading, asJSON bool) error {
	if asJSON {
		return c.json(heldRowOf(decided))
	}
	_, err := fmt.Fprintf(
		c.out,
		"%s of %g at %s: %s\n",
		decided.Label,
		float64(decided.Value)/1e6,
		decided.To.Format(time.RFC3339),
		decided.Decision,
	)

	return err
}
