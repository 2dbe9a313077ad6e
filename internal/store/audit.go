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

// BeginAct records an act before it is done, and sets its id and instant.
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

// EndAct records how an act ended and, unless they are blank, details that were not known
// before. What was recorded once stays. If the process's clock was set back meanwhile, the act
// ends when it began.
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

// ActFilter selects acts; an empty field selects all. Limit must be set.
type ActFilter struct {
	Who string
	Act string
	// the id that the act was done to; for a site also searches that found it
	Subject string
	Org     flex.OrgID
	Before  flex.AuditID // those older than this one: the next page
	Limit   int
}

// about selects the acts on the filter's subject, and the searches that found it.
func (f *ActFilter) about(w *where) {
	if f.Subject == "" {
		return
	}

	// a search records the ids of sites that it found, and no others
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

// Acts returns the acts that the filter selects, newest first; in a context that is limited to
// some organisations, only acts on these.
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
