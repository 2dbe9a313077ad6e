package store

import (
	"context"
	"database/sql"
	"errors"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// OffboardedSite is a site that was offboarded. Its address and other data of its user were deleted.
type OffboardedSite struct {
	ID      flex.SiteID
	Org     flex.OrgID
	OrgName string
	Assets  int        // that it ever had
	Balance flex.Pence // that remains, and nobody can withdraw
}

// OffboardedSites returns the offboarded site with an id, its own or that of one of its former
// assets: at most one for each organisation.
func (all *All) OffboardedSites(
	ctx context.Context,
	id flex.SiteID,
) ([]OffboardedSite, error) {
	site := id
	err := all.row(
		ctx,
		`SELECT site_id FROM former_asset WHERE id = $1`,
		id.Bytes(),
	).Scan(&site)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}

	w := &where{}
	at := w.param(site.Bytes())
	text := `SELECT o.id, o.name, (SELECT count(*) FROM former_asset f WHERE f.org_id = o.id AND f.site_id = ` + at + `),
		(SELECT CAST(-COALESCE(SUM(p.amount), 0) AS BIGINT) FROM posting p
			WHERE p.org_id = o.id AND p.site_id = ` + at + ` AND p.account = ` + w.param(string(ledger.RewardsPayable)) + `)
		FROM org o WHERE NOT EXISTS (SELECT 1 FROM site t WHERE t.id = ` + at + `)
		AND (EXISTS (SELECT 1 FROM ledger l WHERE l.org_id = o.id AND l.site_id = ` + at + `)
			OR EXISTS (SELECT 1 FROM former_asset f WHERE f.org_id = o.id AND f.site_id = ` + at + `))`
	w.within(ctx, "o.id")

	return rows(
		ctx,
		all.conn,
		func(s scanner) (OffboardedSite, error) {
			left := OffboardedSite{ID: site}
			err := s.Scan(&left.Org, &left.OrgName, &left.Assets, &left.Balance)
			return left, err
		},
		text+w.text.String()+` ORDER BY o.id`,
		w.args...,
	)
}

// SiteOrgEver is SiteOrg, and also finds a site that was offboarded.
func (all *All) SiteOrgEver(
	ctx context.Context,
	id flex.SiteID,
) (flex.OrgID, error) {
	org, missing := all.SiteOrg(ctx, id)
	if flex.KindOf(missing) != flex.NotFound {
		return org, missing
	}

	left, err := all.OffboardedSites(ctx, id)
	if err != nil {
		return org, err
	}

	for _, l := range left {
		if l.ID == id {
			return l.Org, nil
		}
	}

	return org, missing
}

// PaymentLine is an attempt at a payment, in a list that goes across organisations.
type PaymentLine struct {
	ID        flex.TransactionID
	SiteID    flex.SiteID
	Org       flex.OrgID
	OrgName   string
	Attempt   int
	Reference string
	Amount    flex.Pence
	Status    ledger.PaymentStatus // of the withdrawal
}

// PaymentsOf returns the attempts that bank statements name by a reference, of each organisation.
func (all *All) PaymentsOf(
	ctx context.Context,
	reference string,
) ([]PaymentLine, error) {
	w := &where{}
	text := `SELECT w.id, w.site_id, o.id, o.name, p.attempt, p.reference, w.amount, w.status
		FROM org o JOIN withdrawal_payee p ON p.org_id = o.id AND p.reference = ` + w.param(reference) + `
		JOIN withdrawal w ON w.id = p.withdrawal_id WHERE 1 = 1`
	w.within(ctx, "o.id")

	return rows(
		ctx,
		all.conn,
		func(s scanner) (PaymentLine, error) {
			var p PaymentLine
			err := s.Scan(
				&p.ID,
				&p.SiteID,
				&p.Org,
				&p.OrgName,
				&p.Attempt,
				&p.Reference,
				&p.Amount,
				&p.Status,
			)

			return p, err
		},
		text+w.text.String()+` ORDER BY o.id`,
		w.args...,
	)
}
