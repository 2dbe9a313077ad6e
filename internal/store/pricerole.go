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

// ChoosePriceSource keeps a choice, in place of one for the same role from the same instant, and
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

// PlanningSources returns the sources that organisations have chosen for what is planned now.
func (all *All) PlanningSources(ctx context.Context) ([]string, error) {
	return rows(
		ctx,
		all.conn,
		scalar[string],
		`SELECT DISTINCT r.source FROM price_role r WHERE r.role = 'planning' AND r.source <> ''
		AND r.from_at = (SELECT max(q.from_at) FROM price_role q
			WHERE q.org_id = r.org_id AND q.role = r.role AND q.from_at <= $1)
		ORDER BY r.source`,
		micros(all.Now()),
	)
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

var _ = law("a retail rate settles nothing",
	`SELECT org_id AS what FROM price_role WHERE role IN ('settlement', 'contract')
		AND (source = 'octopus' OR source LIKE 'octopus:%' OR source LIKE 'octopus-%' OR source = 'retail' OR source LIKE 'retail:%' OR source LIKE 'retail-%')`)
