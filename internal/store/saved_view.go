package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// SavedView is a list that an operator wants to see again.
type SavedView struct {
	ID        flex.SavedViewID
	Operator  flex.OperatorID
	Owner     string // the operator's name; read, not written
	Name      string
	Path      string     // of the page, with its filters
	Org       flex.OrgID // whose operators see it; zero for the operator alone
	OrgName   string     // read, not written
	CreatedAt time.Time
}

const savedViews = `SELECT v.id, v.operator_id, o.name, v.name, v.path, v.org_id, COALESCE(g.name, ''), v.created_at
	FROM saved_view v JOIN operator o ON o.id = v.operator_id LEFT JOIN org g ON g.id = v.org_id`

func scanSavedView(s scanner) (SavedView, error) {
	var org *flex.OrgID
	var v SavedView
	err := s.Scan(
		&v.ID,
		&v.Operator,
		&v.Owner,
		&v.Name,
		&v.Path,
		&org,
		&v.OrgName,
		instant{&v.CreatedAt},
	)

	if org != nil {
		v.Org = *org
	}

	return v, err
}

// AddSavedView stores a view, whose id and instant it sets.
func (all *All) AddSavedView(ctx context.Context, v *SavedView) error {
	v.ID, v.CreatedAt = flex.SavedViewID(all.newID()), all.now

	var org any
	if !v.Org.IsZero() {
		org = v.Org.Bytes()
	}

	_, err := all.exec(
		ctx,
		`INSERT INTO saved_view (id, operator_id, name, path, org_id, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		v.ID.Bytes(),
		v.Operator.Bytes(),
		v.Name,
		v.Path,
		org,
		micros(v.CreatedAt),
	)

	return err
}

// SavedViews returns the views that are an operator's own, and those that are shared with the
// organisations that the context reaches, by name.
func (all *All) SavedViews(
	ctx context.Context,
	operator flex.OperatorID,
) ([]SavedView, error) {
	w := &where{}
	w.within(ctx, "v.org_id")
	own := w.param(operator.Bytes())

	return rows(
		ctx,
		all.conn,
		scanSavedView,
		savedViews+` WHERE v.operator_id = `+own+` AND v.org_id IS NULL OR (v.org_id IS NOT NULL`+w.text.String()+
			`) ORDER BY v.name, v.id`,
		w.args...,
	)
}

// CountSavedViews returns how many views an operator has.
func (all *All) CountSavedViews(
	ctx context.Context,
	operator flex.OperatorID,
) (int, error) {
	var n int
	err := all.row(
		ctx,
		`SELECT count(*) FROM saved_view WHERE operator_id = $1`,
		operator.Bytes(),
	).Scan(&n)

	return n, err
}

// SavedView returns a view, or a NotFound failure.
func (all *All) SavedView(
	ctx context.Context,
	id flex.SavedViewID,
) (SavedView, error) {
	return one(
		ctx,
		all.conn,
		"there is no saved view of that id",
		scanSavedView,
		savedViews+` WHERE v.id = $1`,
		id.Bytes(),
	)
}

// DropSavedView deletes a view.
func (all *All) DropSavedView(ctx context.Context, id flex.SavedViewID) error {
	_, err := all.exec(
		ctx,
		`DELETE FROM saved_view WHERE id = $1`,
		id.Bytes(),
	)

	return err
}
