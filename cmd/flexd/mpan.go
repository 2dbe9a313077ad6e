package main

import (
	"context"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/directory"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// mpanCommand is `flexd mpan`.
type mpanCommand struct {
	Show mpanShow `cmd:"" help:"Show the organisation that a metering point belongs to, and earlier ones. For example: flexd mpan show 1200023305967."`
	Move mpanMove `cmd:"" help:"Change the party of a metering point from a day on. For example: flexd mpan move 1200023305967 --to \"My homes\" --from 2026-12-01."`
}

type mpanShow struct {
	store
	MPAN string `arg:"" name:"mpan" help:"MPAN, 13 digits."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

type partyRow struct {
	Organisation string     `json:"organisation"`
	SiteID       string     `json:"site_id,omitempty"`
	From         time.Time  `json:"from"`
	To           *time.Time `json:"to"`
	Next         string     `json:"next_organisation,omitempty"`
	NextAt       *time.Time `json:"next_from,omitempty"`
}

// Run shows the parties.
func (m *mpanShow) Run(ctx context.Context, c console) error {
	core, err := corePoint(m.MPAN)
	if err != nil {
		return err
	}

	h, err := m.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	rows, err := parties(ctx, h, core)
	if err != nil {
		return err
	}

	return list(
		c,
		m.JSON,
		rows,
		"ORGANISATION\tSITE\tFROM\tTO\tNEXT",
		func(r partyRow) []any {
			next := ""
			if r.NextAt != nil {
				next = r.Next + " from " + r.NextAt.Format(time.RFC3339)
			}

			return []any{r.Organisation, r.SiteID, r.From, r.To, next}
		},
	)
}

// parties reads the former and the present parties of a metering point.
func parties(ctx context.Context, h *app.App, mpan string) ([]partyRow, error) {
	rows := []partyRow{}
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		found, err := all.Registrations(ctx, mpan)
		if err != nil {
			return err
		}

		orgs, err := all.Orgs(ctx)
		if err != nil {
			return err
		}

		names := map[flex.OrgID]string{}
		for _, o := range orgs {
			names[o.ID] = o.Name
		}

		for _, r := range found {
			row := partyRow{Organisation: names[r.Org], From: r.From}
			if !r.Site.IsZero() {
				row.SiteID = r.Site.String()
			}

			if !r.To.IsZero() {
				row.To = &r.To
			}

			if !r.NextAt.IsZero() {
				row.Next, row.NextAt = names[r.NextOrg], &r.NextAt
			}

			rows = append(rows, row)
		}

		return nil
	})

	return rows, err
}

type mpanMove struct {
	store
	form
	MPAN string `arg:"" name:"mpan" help:"MPAN, 13 digits."`
	To   string `help:"Name of the organisation that is to have it." required:"" placeholder:"NAME"`
	From string `help:"First day in London, today or later; at once if not given." placeholder:"DAY"`
}

// Run decides the change of party.
func (m *mpanMove) Run(ctx context.Context, c console) error {
	core, err := corePoint(m.MPAN)
	if err != nil {
		return err
	}

	h, org, err := openFor(ctx, m.store, m.To)
	if err != nil {
		return err
	}

	defer h.Close()
	at := h.DB.Now()

	if m.From != "" {
		day, err := readDay("--from", m.From)
		if err != nil {
			return err
		}

		at = day.Start()
	}

	hasPoint := false
	act := flex.AuditEntry{
		Who:     commandLine,
		Org:     org.ID,
		Act:     "move metering point",
		Subject: "…" + core[9:],
		Detail:  at.Format(time.RFC3339),
	}

	err = h.Access.Act(ctx, act, func() error {
		var err error
		hasPoint, at, err = h.Registry.MovePoint(ctx, core, org.ID, at)
		return err
	})
	if err != nil {
		return err
	}

	message := "No other party has the point"
	if hasPoint {
		message = "The party that has the point is withdrawn then"
	}

	return m.print(
		c,
		fields{"organisation": m.To, "from": at, "withdraws_other": hasPoint},
		"%s; %s may enrol it from %s on.\n",
		message,
		m.To,
		at.Format(time.RFC3339),
	)
}

// corePoint reads an MPAN of the command line. A wrong check digit is accepted, because the
// register may contain such numbers.
func corePoint(text string) (string, error) {
	m, err := directory.ParseMPAN(text)
	if err == nil {
		return m.Core(), nil
	}

	digits := strings.NewReplacer(" ", "", "-", "").Replace(text)
	if len(digits) == 13 && strings.Trim(digits, "0123456789") == "" {
		return digits, nil
	}

	return "", flex.Fail(flex.Invalid, "%q is not an MPAN: %v", text, err)
}
