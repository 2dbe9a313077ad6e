package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Invitable returns the sites of a scope that have something under control that charges, by
// their ids.
func (tx *Tx) Invitable(
	ctx context.Context,
	scope flex.Scope,
) ([]flex.SiteID, error) {
	return tx.invitable(ctx, scope, ``)
}

// Uninvited returns the sites that a product is for and that were not invited to it, by their ids.
func (tx *Tx) Uninvited(
	ctx context.Context,
	p *flex.Product,
) ([]flex.SiteID, error) {
	return tx.invitable(
		ctx,
		p.Scope,
		` AND NOT EXISTS (SELECT 1 FROM product_site i WHERE i.product_id = $2 AND i.site_id = s.site_id)`,
		p.ID.Bytes(),
	)
}

// invitable returns the sites of a scope that meet an additional condition, whose arguments
// begin with $2.
func (tx *Tx) invitable(
	ctx context.Context,
	scope flex.Scope,
	also string,
	more ...any,
) ([]flex.SiteID, error) {
	where, args, err := tx.scopeWhere(
		ctx,
		scope,
		append([]any{tx.org.Bytes()}, more...),
	)
	if err != nil {
		return nil, err
	}

	return rows(
		ctx,
		tx.conn,
		scalar[flex.SiteID],
		`SELECT s.site_id FROM (SELECT DISTINCT a.org_id, a.site_id FROM asset a
			WHERE a.org_id = $1 AND a.type IN ('charger', 'electric_vehicle') AND `+controlled+`) s WHERE TRUE`+also+where+` ORDER BY s.site_id`,
		args...,
	)
}

// Invite has sites be informed of a product, and asks all of them again.
func (tx *Tx) Invite(
	ctx context.Context,
	p *flex.Product,
	sites []flex.SiteID,
) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM product_site WHERE org_id = $1 AND product_id = $2`,
		tx.org.Bytes(),
		p.ID.Bytes(),
	)
	if err != nil {
		return err
	}

	return tx.InviteMore(ctx, p, sites)
}

// InviteMore invites sites that were not invited to a product before; the answers of others
// stay.
func (tx *Tx) InviteMore(
	ctx context.Context,
	p *flex.Product,
	sites []flex.SiteID,
) error {
	const columns = 6
	args := make([]any, 0, columns*len(sites))
	pushes := make([]Push, len(sites))
	for i, site := range sites {
		event := tx.NewEventID()
		pushes[i] = invitation(p, event)
		args = append(
			args,
			p.ID.Bytes(),
			site.Bytes(),
			tx.org.Bytes(),
			event.Bytes(),
			micros(tx.now),
			p.OptOut,
		)
	}

	err := tx.bulk(
		ctx,
		`INSERT INTO product_site (product_id, site_id, org_id, event_id, invited_at, takes_part)`,
		``,
		columns,
		args,
	)
	if err != nil {
		return err
	}

	return tx.Enqueue(ctx, pushes...)
}

// invitation is the message on a product under an event's id.
func invitation(p *flex.Product, event flex.EventID) Push {
	return Push{
		EventID:    event,
		Kind:       InvitationPush,
		Generation: 1,
		ExpiresAt:  p.To,
	}
}

// TellInvited has everybody who was invited to a product be informed of it as it is now.
func (tx *Tx) TellInvited(ctx context.Context, p *flex.Product) error {
	invited, err := tx.Participations(ctx, p.ID, flex.SiteID{}, allSites)
	if err != nil {
		return err
	}

	pushes := make([]Push, len(invited))
	for i, one := range invited {
		event := tx.NewEventID()
		pushes[i] = invitation(p, event)
		_, err := tx.exec(
			ctx,
			`UPDATE product_site SET event_id = $4 WHERE org_id = $1 AND product_id = $2 AND site_id = $3`,
			tx.org.Bytes(),
			p.ID.Bytes(),
			one.Site.Bytes(),
			event.Bytes(),
		)
		if err != nil {
			return err
		}
	}

	return tx.Enqueue(ctx, pushes...)
}

const participationColumns = `s.product_id, s.site_id, s.event_id, s.invited_at, s.takes_part, s.answered_at, s.answered_by`

func participationFields(p *flex.Participation) []any {
	return []any{
		&p.For,
		&p.Site,
		&p.Event,
		instant{&p.InvitedAt},
		&p.TakesPart,
		instant{&p.AnsweredAt},
		&p.AnsweredBy,
	}
}

// allSites is more sites than an organisation has.
const allSites = 1 << 30

// Participations returns at most limit of those who were invited to a product, by their sites' ids,
// those after one, if it is given.
func (tx *Tx) Participations(
	ctx context.Context,
	id flex.ProductID,
	after flex.SiteID,
	limit int,
) ([]flex.Participation, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.Participation, error) {
			var p flex.Participation
			err := s.Scan(participationFields(&p)...)
			return p, err
		},
		`SELECT `+participationColumns+` FROM product_site s WHERE s.org_id = $1 AND s.product_id = $2 AND s.site_id > $3
		ORDER BY s.site_id LIMIT $4`,
		tx.org.Bytes(),
		id.Bytes(),
		after.Bytes(),
		limit,
	)
}

// ProductAnswers counts the invited sites of some products and their answers. A product
// without invited sites is left out.
func (tx *Tx) ProductAnswers(
	ctx context.Context,
	ids ...flex.ProductID,
) (map[flex.ProductID]flex.ProductAnswers, error) {
	found := map[flex.ProductID]flex.ProductAnswers{}
	scan := func(s scanner) error {
		var id flex.ProductID
		var n flex.ProductAnswers
		err := s.Scan(&id, &n.Invited, &n.Answered, &n.TakesPart)
		found[id] = n

		return err
	}

	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			scan,
			`SELECT product_id, count(*), count(answered_at), count(CASE WHEN takes_part THEN 1 END) FROM product_site
			WHERE org_id = $1 AND product_id IN `+list+` GROUP BY product_id`,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return found, nil
}

const invitationQuery = `SELECT ` + productColumns + `, ` + participationColumns + `, COALESCE(t.external_user_id, '')
	FROM product_site s JOIN grid_product p ON p.id = s.product_id JOIN site t ON t.id = s.site_id WHERE s.org_id = $1 `

func scanInvitation(s scanner) (flex.Invitation, error) {
	var v flex.Invitation
	more := append(participationFields(&v.Participation), &v.ExternalUserID)

	var err error
	v.Product, err = scanProduct(extra{s, more})

	return v, err
}

// Invitations returns a site's invitations to products that are not over at an instant, in the
// order in which the products begin.
func (tx *Tx) Invitations(
	ctx context.Context,
	site flex.SiteID,
	since time.Time,
) ([]flex.Invitation, error) {
	return rows(
		ctx,
		tx.conn,
		scanInvitation,
		invitationQuery+`AND s.site_id = $2 AND p.to_at > $3 ORDER BY p.from_at, p.id`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(since),
	)
}

// Invitation returns a product that a site was invited to.
func (tx *Tx) Invitation(
	ctx context.Context,
	id flex.ProductID,
	site flex.SiteID,
) (flex.Invitation, error) {
	return one(
		ctx,
		tx.conn,
		ProductMissing,
		scanInvitation,
		invitationQuery+`AND s.product_id = $2 AND s.site_id = $3`,
		tx.org.Bytes(),
		id.Bytes(),
		site.Bytes(),
	)
}

// AnswerProduct records whether an invited site takes part.
func (tx *Tx) AnswerProduct(
	ctx context.Context,
	id flex.ProductID,
	site flex.SiteID,
	takesPart bool,
	who string,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE product_site SET takes_part = $4, answered_at = $5, answered_by = $6 WHERE org_id = $1 AND product_id = $2 AND site_id = $3`,
		tx.org.Bytes(),
		id.Bytes(),
		site.Bytes(),
		takesPart,
		micros(tx.now),
		who,
	)

	return err
}

// fillInvitations reads the invitations among the pushes.
func (tx *Tx) fillInvitations(
	ctx context.Context,
	at map[flex.EventID]*ClaimedPush,
) error {
	var ids []flex.EventID
	for id, push := range at {
		if push.Kind == InvitationPush {
			ids = append(ids, id)
		}
	}

	for len(ids) > 0 {
		chunk := ids[:min(len(ids), outboxChunk)]
		ids = ids[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := rows(
			ctx,
			tx.conn,
			scanInvitation,
			invitationQuery+`AND s.event_id IN `+list,
			args...,
		)
		if err != nil {
			return err
		}

		for i := range found {
			push := at[found[i].Event]
			push.SiteID, push.Invitation = found[i].Site, &found[i]
		}
	}

	return nil
}
