package store

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
)

// selectionQuery reads the sources and an organisation's choices in one go: every plan needs
// both.
const selectionQuery = `SELECT '' AS role, name, added_at, NULL FROM price_source
	UNION ALL SELECT role, source, from_at, set_at FROM price_role WHERE org_id = $1
	ORDER BY 1, 2, 3`

// selection returns what decides which source counts for what.
func (c conn) selection(
	ctx context.Context,
	org flex.OrgID,
) (*pricing.Selection, error) {
	chosen := &pricing.Selection{Environment: c.db.Environment}

	err := eachRow(ctx, c, func(s scanner) error {
		var role, source string
		var from, set time.Time
		err := s.Scan(&role, &source, instant{&from}, instant{&set})
		if err != nil {
			return err
		}

		if role == "" {
			chosen.Sources = append(chosen.Sources, pricing.Source{
				Name:  source,
				Added: from,
			})

			return nil
		}

		chosen.Choices = append(chosen.Choices, pricing.Choice{
			Role:   pricing.Role(role),
			From:   from,
			Source: source,
			SetAt:  set,
		})

		return nil
	}, selectionQuery, org.Bytes())

	return chosen, err
}

// PriceSelection returns what decides which source counts for what role.
func (tx *Tx) PriceSelection(ctx context.Context) (*pricing.Selection, error) {
	return tx.selection(ctx, tx.org)
}

// ChoosePriceSource stores a choice, in place of one for the same role from the same instant, and
// has everything planned again if it is the planning source.
func (tx *Tx) ChoosePriceSource(ctx context.Context, c pricing.Choice) error {
	_, err := tx.exec(
		ctx,
		`INSERT INTO price_role (org_id, role, from_at, source, set_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, role, from_at) DO UPDATE SET source = excluded.source, set_at = excluded.set_at`,
		tx.org.Bytes(),
		string(c.Role),
		c.From.UnixMicro(),
		c.Source,
		micros(tx.now),
	)

	if err != nil || c.Role != pricing.Planning {
		return err
	}

	// What was planned on these publications was planned on another choice.
	_, err = tx.exec(
		ctx,
		`DELETE FROM wave WHERE org_id = $1 AND publication_id IN (SELECT id FROM publication WHERE to_at > $2)`,
		tx.org.Bytes(),
		micros(tx.now),
	)

	if err != nil {
		return fmt.Errorf("have the fleet planned anew: %w", err)
	}

	tx.Wake(WakeControl)

	return nil
}

// PriceSelections returns what decides which source counts: of each organisation that has ever
// chosen one, and once for all others, which go by the same rule.
func (all *All) PriceSelections(ctx context.Context) ([]*pricing.Selection, error) {
	ruled, err := all.selection(ctx, flex.OrgID{})
	if err != nil {
		return nil, err
	}

	of := map[flex.OrgID]*pricing.Selection{}
	var selections []*pricing.Selection
	err = eachRow(ctx, all.conn, func(s scanner) error {
		var org flex.OrgID
		var c pricing.Choice
		err := s.Scan(&org, &c.Role, &c.Source, instant{&c.From}, instant{&c.SetAt})
		if err != nil {
			return err
		}

		if of[org] == nil {
			of[org] = &pricing.Selection{Environment: ruled.Environment, Sources: ruled.Sources}
			selections = append(selections, of[org])
		}

		of[org].Choices = append(of[org].Choices, c)

		return nil
	}, `SELECT org_id, role, source, from_at, set_at FROM price_role ORDER BY org_id, role, source, from_at`)
	if err != nil {
		return nil, err
	}

	var orgs int
	err = all.row(ctx, `SELECT count(*) FROM org`).Scan(&orgs)
	if orgs > len(of) {
		selections = append(selections, ruled)
	}

	return selections, err
}

// FlexEventsAfter returns how many flex events of the organisation's end after an instant.
func (tx *Tx) FlexEventsAfter(
	ctx context.Context,
	at time.Time,
) (int, error) {
	var n int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM flex_event WHERE org_id = $1 AND to_at > $2`,
		tx.org.Bytes(),
		at.UnixMicro(),
	).Scan(&n)

	return n, err
}

// As pricing.KindOf reads a name: in lower case alone, which LIKE does not ask for on SQLite.
var _ = law("a retail rate settles nothing",
	`SELECT org_id AS what FROM price_role WHERE role IN ('settlement', 'contract')
		AND (source IN ('octopus', 'retail') OR substr(source, 1, 8) IN ('octopus:', 'octopus-') OR substr(source, 1, 7) IN ('retail:', 'retail-'))`)
