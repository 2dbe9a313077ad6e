package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/selection"
	records "flexd/internal/store"
)

// assetCommand is `flexd asset`.
type assetCommand struct {
	Replan       assetReplan       `cmd:"" help:"Plan again from the current inputs, and send the schedule. Example: flexd asset replan CH-1 CH-2 --preview"`
	Resend       assetResend       `cmd:"" help:"Send the newest schedule once more."`
	Release      assetRelease      `cmd:"" help:"Leave an asset free of any limit until its next plug-in."`
	ChargeNow    assetChargeNow    `cmd:"" name:"charge-now" help:"Charge at full power from now on. Example: flexd asset charge-now CH-1 --for 2h"`
	EndChargeNow assetEndChargeNow `cmd:"" name:"end-charge-now" help:"Charge as planned again, before the time of charge-now is over."`
	ReadyBy      assetReadyBy      `cmd:"" name:"ready-by" help:"Change the time by which its car is to be ready, on every day. Example: flexd asset ready-by CH-1 --at 06:30"`
	Exclude      assetExclude      `cmd:"" help:"Take assets out of control until they are included again."`
	Include      assetInclude      `cmd:"" help:"Put excluded assets under control again."`
	Offboard     assetOffboard     `cmd:"" help:"Remove assets for good; their readings and earnings stay. Without --confirm it shows the result, and the text that confirms it."`
}

// ofAssets is the assets that a command is for.
type ofAssets struct {
	ofOrg
	Assets  []string `arg:"" help:"Ids of assets, or their external ids."`
	Preview bool     `help:"Show the result and change nothing."`
	JSON    bool     `name:"json" help:"Print as JSON."`
}

// assetsNamed finds an organisation's assets by their ids or their external ids.
func assetsNamed(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	names []string,
) ([]flex.AssetID, error) {
	var ids []flex.AssetID
	for _, text := range names {
		id, err := assetNamed(ctx, h, org, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}

		ids = append(ids, id)
	}

	return ids, nil
}

// assetNamed finds an asset by its external id, which may have the form of a UUID, or by its
// id. It does not check that an id belongs to the organisation: whatever uses it does.
func assetNamed(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	text string,
) (flex.AssetID, error) {
	a, err := h.Registry.AssetByExternalID(ctx, org, text)
	if err == nil {
		return a.ID, nil
	}

	var id flex.AssetID
	unknown := flex.KindOf(err) == flex.NotFound
	if unknown && id.UnmarshalText([]byte(text)) == nil {
		return id, nil
	}

	return id, err
}

// run shows what an action would do, or does it and writes it into the audit log.
func (o *ofAssets) run(
	ctx context.Context,
	c console,
	a selection.Action,
	confirmed string,
) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	ids, err := assetsNamed(ctx, h, org.ID, o.Assets)
	if err != nil {
		return err
	}

	// the id may be that of another organisation's asset, which does not exist for this one
	ctx = records.Within(ctx, []flex.OrgID{org.ID})

	if o.Preview || a.Kind.Final() && confirmed == "" {
		r, err := h.Selection.Preview(ctx, a, ids)
		if err != nil {
			return err
		}

		return o.print(c, a, r)
	}

	r, err := o.do(ctx, h, org.ID, a, ids, confirmed)
	if err != nil && len(r.Lines) > 0 { // it ended midway, and what was done stays done
		return errors.Join(err, o.print(c, a, r))
	}
	if err != nil {
		return err
	}

	if err := o.print(c, a, r); err != nil {
		return err
	}

	if refused := len(r.Lines) - r.Possible; refused > 0 {
		return flex.Fail(
			flex.Conflict,
			"%d of %d assets were refused",
			refused,
			len(r.Lines),
		)
	}

	return nil
}

// do does an action in the audit log.
func (o *ofAssets) do(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	a selection.Action,
	ids []flex.AssetID,
	confirmed string,
) (selection.Result, error) {
	act := flex.AuditEntry{
		Who:     commandLine,
		Org:     org,
		Act:     string(a.Kind) + " assets",
		Subject: strings.Join(o.Assets, " "),
	}

	var r selection.Result
	err := h.Access.ActWithDetail(ctx, act, func() (string, error) {
		var err error
		r, err = h.Selection.Do(ctx, a, ids, confirmed)
		if len(r.Lines) == 0 {
			return "", err
		}
		return r.String(), err
	})

	return r, err
}

// print prints a result to be read, or as JSON.
func (o *ofAssets) print(
	c console,
	a selection.Action,
	r selection.Result,
) error {
	if o.JSON {
		return c.json(r)
	}

	heading := "ASSET\tTYPE\tWOULD BE"
	if r.Done {
		heading = "ASSET\tTYPE\tOUTCOME"
	}

	err := table(c, r.Lines, heading, func(l selection.Line) []any {
		name, outcome := l.ExternalID, l.Outcome
		if name == "" {
			name = l.AssetID.String()
		}

		if l.Fault != "" {
			outcome = "refused: " + l.Fault
		}

		return []any{name, l.Type, outcome}
	})

	if err != nil || r.Done || !a.Kind.Final() {
		return err
	}

	_, err = fmt.Fprintf(
		c.out,
		"Nothing is done yet. It cannot be undone; if you mean it: --confirm '%s'\n",
		r.Phrase(),
	)

	return err
}

type assetReplan struct{ ofAssets }

// Run plans assets again.
func (o *assetReplan) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Replan}, "")
}

type assetResend struct{ ofAssets }

// Run has the newest schedules of assets sent once more.
func (o *assetResend) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Resend}, "")
}

type assetRelease struct{ ofAssets }

// Run leaves assets free.
func (o *assetRelease) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Release}, "")
}

type assetChargeNow struct {
	ofAssets
	For time.Duration `help:"For how long, 24h at most." default:"4h"`
}

// Run has assets charge at once.
func (o *assetChargeNow) Run(ctx context.Context, c console) error {
	return o.run(
		ctx,
		c,
		selection.Action{Kind: selection.ChargeNow, For: o.For},
		"",
	)
}

type assetEndChargeNow struct{ ofAssets }

// Run has assets that charge at once charge as planned again.
func (o *assetEndChargeNow) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.EndChargeNow}, "")
}

type assetReadyBy struct {
	ofAssets
	At string `help:"The time of day, in the zone of the tariff." required:"" placeholder:"HH:MM"`
}

// Run changes by when cars are to be ready.
func (o *assetReadyBy) Run(ctx context.Context, c console) error {
	by, err := flex.ParseWallTime(o.At)
	if err != nil {
		return flex.Fail(flex.Invalid, "--at: %v", err)
	}

	return o.run(ctx, c, selection.Action{Kind: selection.ReadyBy, By: by}, "")
}

type assetExclude struct{ ofAssets }

// Run takes assets out of control.
func (o *assetExclude) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Exclude}, "")
}

type assetInclude struct{ ofAssets }

// Run puts assets under control again.
func (o *assetInclude) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Include}, "")
}

type assetOffboard struct {
	ofAssets
	Confirm string `help:"The text that confirms it, as the command prints it without this flag." placeholder:"TEXT"`
}

// Run takes assets away.
func (o *assetOffboard) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, selection.Action{Kind: selection.Offboard}, o.Confirm)
}
