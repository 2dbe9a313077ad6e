package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"flexd/internal/flex"
)

// exportChanged has the batteries of a constraint group, and of those that lie in it, planned again at once, and the cars there that may
// discharge, as what limits its export changed.
func (tx *Tx) exportChanged(
	ctx context.Context,
	group string,
) error {
	names, err := tx.groupsInside(ctx, group)
	if err != nil {
		return err
	}

	list, args := inNames([]any{tx.org.Bytes()}, names)
	_, err = tx.exec(
		ctx,
		`UPDATE battery_plan SET again = TRUE WHERE org_id = $1 AND asset_id IN
			(SELECT a.id FROM asset a JOIN cap_site c ON c.site_id = a.site_id WHERE c.org_id = $1 AND c.name IN `+list+`)`,
		args...,
	)

	if err == nil {
		err = tx.dischargersDue(ctx, names)
	}

	tx.Wake(WakeControl)

	return err
}

// dischargersDue has the cars in some constraint groups planned again at once that may discharge.
func (tx *Tx) dischargersDue(
	ctx context.Context,
	groups []string,
) error {
	list, args := inNames([]any{tx.org.Bytes(), micros(tx.now)}, groups)
	_, err := tx.exec(
		ctx,
		`UPDATE session SET due_at = $2, due_for = 'inputs' WHERE org_id = $1 AND plugged_out_at IS NULL
			AND (due_for IS NULL OR due_for <> 'inputs' OR due_at > $2)
			AND event_id IN (SELECT c.event_id FROM session o JOIN schedule c ON c.event_id = o.event_id JOIN cap_site g ON g.site_id = o.site_id
				WHERE o.org_id = $1 AND o.plugged_out_at IS NULL AND c.discharge IS NOT NULL AND g.org_id = $1 AND g.name IN `+list+`)`,
		args...,
	)

	return err
}

// CapDischargers returns the plugged-in cars of a constraint group, and of those that lie in it, that may discharge by what they were planned
// as last, in the order of the assets; after them those that were freed while they were plugged in. Those of which that cannot be read are
// logged and returned by themselves.
func (tx *Tx) CapDischargers(
	ctx context.Context,
	group string,
) ([]ScheduledAsset, []flex.AssetID, error) {
	names, err := tx.groupsInside(ctx, group)
	if err != nil {
		return nil, nil, err
	}

	list, args := inNames([]any{tx.org.Bytes()}, names)
	which := `c.discharge IS NOT NULL AND s.site_id IN (SELECT g.site_id FROM cap_site g WHERE g.org_id = $1 AND g.name IN ` + list + `)
			ORDER BY s.asset_id`

	open, err := tx.plannedEach(ctx, 0, which, args...)
	if err != nil {
		return nil, nil, err
	}

	freed, err := tx.plannedFreed(ctx, which, args...)
	if err != nil {
		return nil, nil, err
	}

	found, unread := tx.withoutUnread(ctx, append(open, freed...))

	return found, unread, nil
}

// ExportLimited returns the constraint groups around an asset of which something limits the export now or later, the innermost
// first.
func (tx *Tx) ExportLimited(
	ctx context.Context,
	asset flex.AssetID,
) ([]string, error) {
	var group string
	err := tx.row(
		ctx,
		`SELECT c.name FROM asset a JOIN cap_site c ON c.site_id = a.site_id WHERE a.org_id = $1 AND a.id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	).Scan(&group)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	limited, err := rows(
		ctx,
		tx.conn,
		scalar[string],
		`SELECT group_name FROM cap_limit WHERE org_id = $1 AND direction = 'export' AND to_at > $2
			UNION SELECT group_name FROM cap_link WHERE org_id = $1 AND export_fallback_w IS NOT NULL AND lost_at IS NOT NULL`,
		tx.org.Bytes(),
		micros(tx.now),
	)
	if err != nil || len(limited) == 0 {
		return nil, err
	}

	tree, err := tx.CapTree(ctx)

	return slices.DeleteFunc(tree.Path(group), func(name string) bool {
		return !slices.Contains(limited, name)
	}), err
}

// ExportLimits returns what limits the export of constraint groups now and later, the fallback of a lost link among it.
func (tx *Tx) ExportLimits(ctx context.Context) ([]flex.CapLimit, error) {
	return tx.bindingLimits(ctx, flex.Export)
}

// CapBattery is a battery under caps, with what it is sent that may have it draw or give power.
type CapBattery struct {
	ID    flex.AssetID
	Group string     // constraint group of its site; empty for none
	Power flex.Watts // zero where it is not known
	// whether flexd plans it, and the plan then; the modes are empty without one
	Controlled bool
	Plan       BatteryPlan
	Asked      []AskedPower // by dispatches that are followed and not over, the newest last
}

// AskedPower is what a dispatch asks a battery for; a negative power is given to the grid.
type AskedPower struct {
	flex.Span
	Power flex.Watts
}

// CapBatteries returns the batteries of a constraint group and of those that lie in it, or with no group those of the whole
// organisation that have a plan or are dispatched, in the order of their ids. Of their plans they have the modes alone,
// and what they say of committed half-hours.
func (tx *Tx) CapBatteries(
	ctx context.Context,
	group string,
) ([]CapBattery, error) {
	const columns = `SELECT a.id, COALESCE(c.name, ''), COALESCE(a.power_w, m.power_w), ` + controlled + `, p.from_at, COALESCE(p.modes, ''), p.handed_at, COALESCE(p.handed, '') `
	const besides = ` LEFT JOIN model m ON m.key = ` + modelKeySQL + ` LEFT JOIN battery_plan p ON p.asset_id = a.id `

	names, err := tx.groupsInside(ctx, group)
	if err != nil {
		return nil, err
	}

	list, args := inNames([]any{tx.org.Bytes()}, names)
	text := columns + `FROM cap_site c JOIN asset a ON a.site_id = c.site_id` + besides +
		`WHERE c.org_id = $1 AND c.name IN ` + list + ` AND a.type = 'battery' ORDER BY a.id`
	if group == "" {
		names = nil
		text = columns + `FROM asset a LEFT JOIN cap_site c ON c.site_id = a.site_id AND c.org_id = a.org_id` + besides +
			`WHERE a.org_id = $1 AND a.type = 'battery' AND a.id IN (SELECT asset_id FROM battery_plan WHERE org_id = $1
				UNION SELECT d.asset_id FROM dispatch e JOIN dispatch_asset d ON d.event_id = e.event_id WHERE e.org_id = $1 AND e.to_at > $2)
			ORDER BY a.id`
		args = []any{tx.org.Bytes(), micros(tx.now)}
	}

	found, err := rows(ctx, tx.conn, scanCapBattery, text, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return found, tx.readAsked(ctx, names, found)
}

func scanCapBattery(s scanner) (CapBattery, error) {
	var power sql.NullInt64
	var from time.Time
	var b CapBattery
	err := s.Scan(
		&b.ID,
		&b.Group,
		&power,
		&b.Controlled,
		instant{&from},
		&b.Plan.Modes,
		instant{&b.Plan.CommittedFrom},
		&b.Plan.Committed,
	)

	b.Power = flex.Watts(power.Int64)
	b.Plan.From = flex.PeriodAt(from)

	return b, err
}

// readAsked fills in what dispatches ask the batteries of some groups for, or of all.
func (tx *Tx) readAsked(
	ctx context.Context,
	groups []string,
	found []CapBattery,
) error {
	at := make(map[flex.AssetID]*CapBattery, len(found))
	for i := range found {
		at[found[i].ID] = &found[i]
	}

	const asked = `SELECT p.asset_id, d.event_id, d.from_at, d.to_at, p.power_w, ` + answerColumns + `
		FROM dispatch d JOIN dispatch_asset p ON p.event_id = d.event_id` + answerJoins
	text := asked + `WHERE d.org_id = $1 AND d.to_at > $2`
	args := []any{tx.org.Bytes(), micros(tx.now)}
	if len(groups) > 0 {
		var list string
		list, args = inNames(args, groups)
		text = asked + `JOIN asset a ON a.id = p.asset_id JOIN cap_site c ON c.site_id = a.site_id
			WHERE d.org_id = $1 AND d.to_at > $2 AND c.org_id = $1 AND c.name IN ` + list
	}

	powers, err := rows(ctx, tx.conn, scanAsked, text, args...)
	if err != nil {
		return err
	}

	// They are sorted here: a query in this order goes through all dispatches that ever were.
	slices.SortFunc(powers, func(a, b askedOf) int {
		return bytes.Compare(a.event.Bytes(), b.event.Bytes())
	})

	for _, p := range powers {
		if b := at[p.asset]; b != nil && p.applies {
			b.Asked = append(b.Asked, p.AskedPower)
		}
	}

	return nil
}

// askedOf is what a dispatch asks of an asset.
type askedOf struct {
	asset flex.AssetID
	event flex.EventID
	AskedPower
	applies bool
}

func scanAsked(s scanner) (askedOf, error) {
	var answer dispatchAnswer
	var a askedOf
	err := s.Scan(append(
		[]any{
			&a.asset,
			&a.event,
			instant{&a.From},
			instant{&a.To},
			&a.Power,
		},
		answer.dest()...,
	)...)
	a.applies = answer.applies()

	return a, err
}
