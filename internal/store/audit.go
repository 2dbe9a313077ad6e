package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

var _ = law(
	"an act ends after it begins, and says how",
	`SELECT id AS what FROM audit
	WHERE ended_at < at OR (ended_at IS NULL) <> (outcome = '')`,
)

// BeginAct writes an act down before it is done; its id and instant are set here.
func (all *All) BeginAct(ctx context.Context, a *flex.AuditEntry) error {
	a.ID, a.At = flex.AuditID(all.newID()), all.now
	for _, text := range []*string{&a.Who, &a.Source, &a.Act, &a.Subject, &a.Detail} {
		*text = flex.Keepable(*text) // as the link says it
	}

	row := []value{
		{"id", a.ID.Bytes()},
		{"at", micros(a.At)},
		{"who", a.Who},
		{"source", a.Source},
		{"act", a.Act},
		{"org_id", nullOrg(a.Org)},
		{"subject", a.Subject},
		{"detail", a.Detail},
	}

	err := all.insert(ctx, "audit", row)
	if err != nil {
		return err
	}

	return all.link(ctx, a.ID, begunText(*a))
}

func nullOrg(id flex.OrgID) any {
	if id.IsZero() {
		return nil
	}
	return id.Bytes()
}

// EndAct writes down how an act ended, and what of it was not known before, unless that is
// blank. What was written down once stays. An act whose process's clock was set back meanwhile ends when it began.
func (all *All) EndAct(
	ctx context.Context,
	id flex.AuditID,
	outcome, detail string,
) error {
	outcome, detail = flex.Keepable(outcome), flex.Keepable(detail)
	n, err := all.exec(
		ctx,
		`UPDATE audit SET outcome = $2, ended_at = CASE WHEN at > $3 THEN at ELSE $3 END, detail = CASE WHEN $4 = '' THEN detail ELSE $4 END
		WHERE id = $1 AND ended_at IS NULL`,
		id.Bytes(),
		outcome,
		micros(all.now),
		detail,
	)
	if err != nil || n == 0 {
		return err
	}

	var kept string
	var ended time.Time
	err = all.row(
		ctx,
		`SELECT detail, ended_at FROM audit WHERE id = $1`,
		id.Bytes(),
	).Scan(&kept, instant{&ended})
	if err != nil {
		return err
	}

	return all.link(ctx, id, endedText(id, ended, outcome, kept))
}

// ActFilter chooses acts; what is empty takes all. Limit must be set.
type ActFilter struct {
	Who string
	Act string
	// what it was done to, as the id of a site; searches that found the site too
	Subject string
	Org     flex.OrgID
	Before  flex.AuditID // those older than this one: the next page
	Limit   int
}

// about keeps the acts on the filter's subject, and the searches that found it.
func (f *ActFilter) about(w *where) {
	if f.Subject == "" {
		return
	}

	// a search names the sites that it found by their ids, and nothing else is looked for in it
	var site flex.SiteID
	if site.UnmarshalText([]byte(f.Subject)) != nil {
		w.text.WriteString(" AND subject = " + w.param(f.Subject))
		return
	}

	subject, found := w.param(f.Subject), w.param(f.Subject)

	// written out, so that the index of searches is used
	w.text.WriteString(" AND (subject = " + subject +
		" OR (act = '" + flex.ActSearch + "' AND detail LIKE '%' || " + found + " || '%'))")
}

// Acts returns the acts of the filter, newest first; in a context of some organisations, those on
// them alone.
func (all *All) Acts(ctx context.Context, f ActFilter) ([]flex.AuditEntry, error) {
	w := &where{}
	w.text.WriteString("1 = 1")

	if f.Who != "" {
		w.text.WriteString(" AND who = " + w.param(f.Who))
	}

	if f.Act != "" {
		w.text.WriteString(" AND act = " + w.param(f.Act))
	}

	f.about(w)

	if !f.Org.IsZero() {
		w.text.WriteString(" AND org_id = " + w.param(f.Org.Bytes()))
	}

	if !f.Before.IsZero() {
		w.text.WriteString(" AND id < " + w.param(f.Before.Bytes()))
	}

	w.within(ctx, "org_id")
	limit := w.param(f.Limit)
	scan := func(s scanner) (flex.AuditEntry, error) {
		var a flex.AuditEntry
		err := s.Scan(
			&a.ID,
			instant{&a.At},
			&a.Who,
			&a.Source,
			&a.Act,
			&a.Org,
			&a.Subject,
			&a.Detail,
			&a.Outcome,
			instant{&a.EndedAt},
		)

		return a, err
	}

	return rows(
		ctx,
		all.conn,
		scan,
		`SELECT id, at, who, source, act, org_id, subject, detail, outcome, ended_at
		FROM audit WHERE `+w.text.String()+` ORDER BY id DESC LIMIT `+limit,
		w.args...,
	)
}
