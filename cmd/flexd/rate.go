package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/control"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// rateCommand is `flexd rate`.
type rateCommand struct {
	Show  rateShow  `cmd:"" help:"Show what was learned of the power that an asset really draws, and from which sessions; of a heat pump or a hot-water tank, of its heat. Example: flexd rate show my-charger --json"`
	Pin   ratePin   `cmd:"" help:"Fix the power that an asset is planned with. Example: flexd rate pin ASSET_ID 3.6"`
	Reset rateReset `cmd:"" help:"Delete an asset's learned and fixed power; of a heat pump or a hot-water tank, what was learned of its heat. Example: flexd rate reset ASSET_ID"`
}

// rateSession is what was learned from a session, as it is printed.
type rateSession struct {
	SessionID flex.SessionID `json:"session_id"`
	From      time.Time      `json:"from"`
	To        time.Time      `json:"to"`
	HalfHours int            `json:"half_hours"`
	PowerKW   *float64       `json:"power_kw"` // null for all that is nominal
	DelayMin  float64        `json:"start_delay_minutes"`
	TailKWh   float64        `json:"tail_kwh"`
	VehicleKW *float64       `json:"vehicle_kw,omitempty"`
}

// rateRow is a rate as it is printed.
type rateRow struct {
	AssetID   flex.AssetID  `json:"asset_id"`
	NominalKW float64       `json:"nominal_kw"`
	PlannedKW float64       `json:"planned_kw"`
	Origin    string        `json:"origin"`
	PinnedKW  *float64      `json:"pinned_kw,omitempty"`
	HalfHours int           `json:"half_hours"`
	Since     *time.Time    `json:"since,omitempty"`
	Certainty string        `json:"certainty"`
	DelayMin  float64       `json:"start_delay_minutes"`
	TailKWh   float64       `json:"tail_kwh"`
	MinimumKW *float64      `json:"minimum_kw,omitempty"`
	Sessions  []rateSession `json:"sessions"`
}

// kwOrNull is a power in kW; one that is nothing, or all that is nominal, is null.
func kwOrNull(w flex.Watts) *float64 {
	if w <= 0 || w == flex.NoLimit {
		return nil
	}
	return new(w.KW())
}

func rateRowOf(r control.AssetRate) rateRow {
	row := rateRow{
		AssetID:   r.AssetID,
		NominalKW: r.Nominal.KW(),
		PlannedKW: r.Planned.KW(),
		Origin:    r.Origin,
		PinnedKW:  kwOrNull(r.Pinned),
		HalfHours: r.HalfHours,
		Certainty: string(r.Certainty),
		DelayMin:  r.Delay.Minutes(),
		TailKWh:   r.Tail.KWh(),
		MinimumKW: kwOrNull(r.Minimum),
		Sessions:  make([]rateSession, len(r.Learned)),
	}

	if !r.Since.IsZero() {
		row.Since = &r.Since
	}

	for i, s := range r.Learned {
		row.Sessions[i] = rateSession{
			s.ID,
			s.From,
			s.To,
			s.HalfHours,
			kwOrNull(s.Power),
			s.Delay.Minutes(),
			s.Tail.KWh(),
			kwOrNull(s.Vehicle),
		}
	}

	return row
}

type rateShow struct {
	store
	Asset string `arg:"" help:"Id of the asset, or its external id."`
	JSON  bool   `help:"Print as JSON." name:"json"`
}

// Run shows the rate.
func (o *rateShow) Run(ctx context.Context, c console) error {
	h, org, id, err := o.openAsset(ctx, o.Asset)
	if err != nil {
		return err
	}

	defer h.Close()

	err = c.rate(ctx, h, org, id, o.JSON)
	if flex.KindOf(err) != flex.NotFound {
		return err
	}

	heat := c.heat(ctx, h, org, id, o.JSON)
	if flex.KindOf(heat) == flex.NotFound { // no heater either: a battery
		return err
	}

	return heat
}

// heatRow is what is known about the heat of a heater, as it is printed.
type heatRow struct {
	AssetID     flex.AssetID `json:"asset_id"`
	Summary     string       `json:"summary"`
	Days        int          `json:"learned_days"`
	Since       string       `json:"since,omitempty"` // a day
	Certainty   string       `json:"certainty"`
	Loss        float64      `json:"loss_w_per_k,omitempty"` // of a heat pump's building, as the next two
	Capacity    float64      `json:"capacity_kwh_per_k,omitempty"`
	Gain        float64      `json:"gain_w,omitempty"`
	UsedInDay   float64      `json:"used_in_a_day_kwh,omitempty"` // of a tank, as the next
	KeptForMore float64      `json:"kept_for_more_kwh,omitempty"`
}

// heat prints what is known about the heat of a heater.
func (c console) heat(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	id flex.AssetID,
	asJSON bool,
) error {
	known, err := h.Control.Heat(ctx, org, id)
	if err != nil {
		return err
	}
	if !asJSON {
		_, err := fmt.Fprintf(c.out, "Asset %s is %s.\n", id, known.Sentence())
		return err
	}

	return c.json(heatRow{
		AssetID:     id,
		Summary:     known.Sentence(),
		Days:        known.Days,
		Since:       known.Since,
		Certainty:   string(known.Certainty),
		Loss:        known.Loss,
		Capacity:    known.Capacity / 1000,
		Gain:        known.Gain,
		UsedInDay:   known.UsedInDay.KWh(),
		KeptForMore: known.Spare.KWh(),
	})
}

// rate prints what is known about an asset.
func (c console) rate(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	id flex.AssetID,
	asJSON bool,
) error {
	r, err := h.Control.Rate(ctx, org, id)
	if err != nil {
		return err
	}
	if asJSON {
		return c.json(rateRowOf(r))
	}

	fmt.Fprintf(c.out, "Asset %s is %s.\n", id, r.Sentence())

	if len(r.Learned) == 0 {
		return nil
	}

	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FROM\tTO\tHALF-HOURS\tKW\tSTART DELAY\tTAIL KWH")

	for _, s := range r.Learned {
		power := "nominal"
		if p := kwOrNull(s.Power); p != nil {
			power = fmt.Sprint(*p)
		} else if s.HalfHours == 0 {
			power = "-"
		}

		fmt.Fprintf(
			w,
			"%s\t%s\t%d\t%s\t%s\t%g\n",
			s.From.Format(time.RFC3339),
			s.To.Format(time.RFC3339),
			s.HalfHours,
			power,
			s.Delay,
			s.Tail.KWh(),
		)
	}

	return w.Flush()
}

type ratePin struct {
	store
	Asset string  `arg:"" help:"Id of the asset, or its external id."`
	KW    float64 `arg:"" name:"kw" help:"The power in kW."`
	JSON  bool    `help:"Print as JSON." name:"json"`
}

// Run pins the rate.
func (o *ratePin) Run(ctx context.Context, c console) error {
	return o.changeRate(
		ctx,
		c,
		o.Asset,
		"pin charging rate",
		fmt.Sprintf("%g kW", o.KW),
		o.JSON,
		func(h *app.App, org flex.OrgID, id flex.AssetID) error {
			return h.Control.PinRate(ctx, org, id, flex.FromKW(o.KW))
		},
	)
}

type rateReset struct {
	store
	Asset string `arg:"" help:"Id of the asset, or its external id."`
	JSON  bool   `help:"Print as JSON." name:"json"`
}

// Run resets the rate.
func (o *rateReset) Run(ctx context.Context, c console) error {
	return o.changeRate(
		ctx,
		c,
		o.Asset,
		"reset charging rate",
		"",
		o.JSON,
		func(h *app.App, org flex.OrgID, id flex.AssetID) error {
			return h.Control.ResetRate(ctx, org, id)
		},
	)
}

// openAsset opens flexd. It finds an asset by its id or its external id, and the asset's
// organisation.
func (s *store) openAsset(
	ctx context.Context,
	text string,
) (*app.App, flex.OrgID, flex.AssetID, error) {
	h, err := s.open(ctx)
	if err != nil {
		return nil, flex.OrgID{}, flex.AssetID{}, err
	}

	var org flex.OrgID
	var id flex.AssetID
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, id, err = assetOfAny(ctx, all, text) // which may have the form of a UUID

		unknown := flex.KindOf(err) == flex.NotFound
		if unknown && id.UnmarshalText([]byte(text)) == nil {
			org, err = all.AssetOrg(ctx, id)
		}

		return err
	})
	if err != nil {
		h.Close()
		return nil, org, id, err
	}

	return h, org, id, nil
}

// assetOfAny finds the asset with an external id in any organisation. If several organisations
// have one, its id is needed.
func assetOfAny(
	ctx context.Context,
	all *records.All,
	external string,
) (flex.OrgID, flex.AssetID, error) {
	found, err := all.AssetsByExternalID(ctx, external)
	if err != nil {
		return flex.OrgID{}, flex.AssetID{}, err
	}

	switch len(found) {
	case 0:
		return flex.OrgID{}, flex.AssetID{}, flex.Fail(
			flex.NotFound,
			"there is no asset with the id or the external id %q",
			external,
		)
	case 1:
		return found[0].Org, found[0].Asset, nil
	}

	return flex.OrgID{}, flex.AssetID{}, flex.Fail(
		flex.Invalid,
		"%d organisations have an asset with the external id %q: give the asset's id",
		len(found),
		external,
	)
}

// changeRate changes the planned power of an asset, writes an audit entry and prints the
// values in force.
func (s *store) changeRate(
	ctx context.Context,
	c console,
	asset, act, detail string,
	asJSON bool,
	change func(*app.App, flex.OrgID, flex.AssetID) error,
) error {
	h, org, id, err := s.openAsset(ctx, asset)
	if err != nil {
		return err
	}

	defer h.Close()

	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     act,
			Subject: id.String(),
			Detail:  detail,
		},
		func() error {
			return change(h, org, id)
		},
	)

	if err != nil {
		return err
	}

	err = c.rate(ctx, h, org, id, asJSON)
	if flex.KindOf(err) == flex.NotFound { // a heater, of which no rate is learned
		return c.heatForgotten(id, asJSON)
	}

	return err
}

// heatForgottenRow is a heater of which nothing is learned any more, as it is printed.
type heatForgottenRow struct {
	AssetID flex.AssetID `json:"asset_id"`
	Days    int          `json:"learned_days"`
}

// heatForgotten prints that the learned values of a heater were deleted.
func (c console) heatForgotten(id flex.AssetID, asJSON bool) error {
	if asJSON {
		return c.json(heatForgottenRow{AssetID: id})
	}

	_, err := fmt.Fprintf(c.err, "What was learned of the heat of %s is forgotten.\n", id)

	return err
}
