package main

import (
	"context"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// unreadyCommand is `flexd unready`.
type unreadyCommand struct {
	ofOrg
	Day  string `help:"The London day of the times by which cars were to be ready; today if left out." placeholder:"DAY"`
	JSON bool   `help:"Print as JSON." name:"json"`
}

type unreadyRow struct {
	AssetID    flex.AssetID         `json:"asset_id"`
	ExternalID string               `json:"external_id"`
	ReadyBy    time.Time            `json:"ready_by"`
	PluggedIn  time.Time            `json:"plugged_in_at"`
	PluggedOut time.Time            `json:"plugged_out_at,omitzero"`
	Need       float64              `json:"need_kwh"`
	Planned    float64              `json:"planned_kwh"`
	Had        float64              `json:"had_kwh"`
	Metered    bool                 `json:"metered"`
	Missing    float64              `json:"missing_kwh"`
	Cause      control.UnreadyCause `json:"cause"`
}

// Run lists the cars that were not ready on a day.
func (o *unreadyCommand) Run(ctx context.Context, c console) error {
	day, err := optionalDay("--day", o.Day)
	if err != nil {
		return err
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	found, err := h.Control.Unready(ctx, org.ID, day)
	if err != nil {
		return err
	}

	rows := make([]unreadyRow, len(found))
	for i, u := range found {
		rows[i] = unreadyRow{
			AssetID:    u.AssetID,
			ExternalID: u.ExternalID,
			ReadyBy:    u.ReadyBy,
			PluggedIn:  u.PluggedInAt,
			PluggedOut: u.PluggedOutAt,
			Need:       u.Need.KWh(),
			Planned:    u.Planned.KWh(),
			Had:        u.Had.KWh(),
			Metered:    u.Metered,
			Missing:    u.Missing().KWh(),
			Cause:      u.Cause,
		}
	}

	return list(
		c,
		o.JSON,
		rows,
		"ASSET\tREADY BY\tNEED KWH\tPLANNED\tHAD\tMETERED\tMISSING\tCAUSE",
		func(r unreadyRow) []any {
			return []any{
				r.ExternalID,
				r.ReadyBy,
				r.Need,
				r.Planned,
				r.Had,
				r.Metered,
				r.Missing,
				r.Cause,
			}
		},
	)
}
