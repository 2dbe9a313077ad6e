package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law(
		"an alert that is sent has fired",
		`SELECT a.id AS what FROM alert a WHERE a.fired_at IS NULL
		AND EXISTS (SELECT 1 FROM alert_message m WHERE m.alert_id = a.id)`,
	)
	_ = law(
		"an alert does not end before it fires",
		`SELECT id AS what FROM alert WHERE resolved_at IS NOT NULL AND (fired_at IS NULL OR resolved_at < fired_at)`,
	)
)

// Ids of alerts.
type (
	AlertID        = flex.AlertID
	AlertRouteID   = flex.ID[AlertRoute]
	AlertMessageID = flex.ID[AlertMessage]
)

// AlertRule says at which count of a kind of exception, and after how long, an alert fires.
type AlertRule struct {
	Kind      string
	Org       flex.OrgID // zero for all
	Enabled   bool
	Threshold int
	For       time.Duration
}

// AlertRules returns the rules that the operator has set.
func (all *All) AlertRules(ctx context.Context) ([]AlertRule, error) {
	return rows(ctx, all.conn, func(s scanner) (AlertRule, error) {
		var seconds int64
		var r AlertRule
		err := s.Scan(&r.Kind, &r.Org, &r.Enabled, &r.Threshold, &seconds)
		r.For = time.Duration(seconds) * time.Second
		return r, err
	}, `SELECT kind, org_id, enabled, threshold, for_s FROM alert_rule ORDER BY kind, org_id`)
}

// PutAlertRule stores a rule in place of the one before.
func (all *All) PutAlertRule(ctx context.Context, r AlertRule) error {
	_, err := all.exec(
		ctx,
		`INSERT INTO alert_rule (kind, org_id, enabled, threshold, for_s) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (kind, org_id) DO UPDATE SET enabled = excluded.enabled, threshold = excluded.threshold, for_s = excluded.for_s`,
		r.Kind,
		r.Org.Bytes(),
		r.Enabled,
		r.Threshold,
		int64(r.For/time.Second),
	)

	return err
}

// AlertRoute says to whom alerts are sent, and how.
type AlertRoute struct {
	ID        AlertRouteID
	Name      string
	Kind      string // email, webhook, pagerduty, alertmanager
	Target    string // a URL, or an e-mail address
	Secret    flex.Secret
	Level     string     // the least that it is sent
	Org       flex.OrgID // whose alerts; zero for all
	Heartbeat time.Duration
	CreatedAt time.Time
}

const alertRouteColumns = `id, name, kind, target, sealed, level, org_id, heartbeat_s, created_at`

func (c conn) scanAlertRoute(s scanner) (AlertRoute, error) {
	var sealed []byte
	var seconds int64

	var r AlertRoute
	err := s.Scan(
		&r.ID,
		&r.Name,
		&r.Kind,
		&r.Target,
		&sealed,
		&r.Level,
		&r.Org,
		&seconds,
		instant{&r.CreatedAt},
	)

	r.Heartbeat = time.Duration(seconds) * time.Second
	if err != nil || len(sealed) == 0 {
		return r, err
	}

	secret, err := c.unseal(sealedRoute, flex.OrgID{}, r.ID.Bytes(), sealed)
	r.Secret = flex.Secret(secret)

	return r, err
}

// AddAlertRoute stores a route. A name that is taken is a Conflict failure.
func (all *All) AddAlertRoute(ctx context.Context, r *AlertRoute) error {
	r.ID = AlertRouteID(all.newID())
	var sealed []byte // null without a secret

	if r.Secret != "" {
		var err error
		sealed, err = all.seal(
			sealedRoute,
			flex.OrgID{},
			r.ID.Bytes(),
			[]byte(r.Secret.Reveal()),
		)

		if err != nil {
			return err
		}
	}

	row := []value{
		{"id", r.ID.Bytes()},
		{"name", r.Name},
		{"kind", r.Kind},
		{"target", r.Target},
		{"sealed", sealed},
		{"level", r.Level},
		{"org_id", r.Org.Bytes()},
		{"heartbeat_s", int64(r.Heartbeat / time.Second)},
		{"beat_at", 0},
		{"created_at", micros(all.now)},
	}

	n, err := all.insertOr(ctx, "alert_route", row, `ON CONFLICT (name) DO NOTHING`)
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "there is a route %q already", r.Name)
	}

	return err
}

// AlertRoutes returns the routes by their names.
func (all *All) AlertRoutes(ctx context.Context) ([]AlertRoute, error) {
	w := &where{}
	w.text.WriteString("1 = 1")
	w.within(ctx, "org_id")

	return rows(
		ctx,
		all.conn,
		all.scanAlertRoute,
		`SELECT `+alertRouteColumns+` FROM alert_route WHERE `+w.text.String()+` ORDER BY name`,
		w.args...,
	)
}

// DropAlertRoute deletes a route. Its pending messages are not sent.
func (all *All) DropAlertRoute(ctx context.Context, name string) error {
	n, err := all.exec(ctx, `DELETE FROM alert_route WHERE name = $1`, name)
	if err == nil && n == 0 {
		return flex.Fail(flex.NotFound, "there is no route %q", name)
	}

	return err
}

// BeatAlertRoutes returns the routes whose heartbeat is due, and records it as sent now.
func (all *All) BeatAlertRoutes(ctx context.Context) ([]AlertRoute, error) {
	return rows(
		ctx,
		all.conn,
		all.scanAlertRoute,
		`UPDATE alert_route SET beat_at = $1 WHERE heartbeat_s > 0 AND beat_at + heartbeat_s * 1000000 <= $1
		RETURNING `+alertRouteColumns,
		micros(all.now),
	)
}

const alertColumns = `id, kind, org_id, level, count, title, text, since_at, latest_at, fired_at, round, resolved_at,
	acknowledged_at, acknowledged_by, snoozed_to, note`

func scanAlert(s scanner) (flex.Alert, error) {
	var a flex.Alert
	err := s.Scan(
		&a.ID,
		&a.Kind,
		&a.Org,
		&a.Level,
		&a.Count,
		&a.Title,
		&a.Text,
		instant{&a.SinceAt},
		instant{&a.LatestAt},
		instant{&a.FiredAt},
		&a.Round,
		instant{&a.ResolvedAt},
		instant{&a.AcknowledgedAt},
		&a.AcknowledgedBy,
		instant{&a.SnoozedTo},
		&a.Note,
	)

	return a, err
}

// NoteAlert records that a rule's condition holds now, and returns the rule's open alert.
func (all *All) NoteAlert(ctx context.Context, a flex.Alert) (flex.Alert, error) {
	id := all.newID()
	return scanAlert(all.row(
		ctx,
		`INSERT INTO alert (id, kind, org_id, level, count, title, text, since_at, latest_at, round, acknowledged_by, note)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 0, '', '')
		ON CONFLICT (kind, org_id) WHERE resolved_at IS NULL DO UPDATE SET level = excluded.level, count = excluded.count, title = excluded.title,
			text = excluded.text, latest_at = excluded.latest_at
		RETURNING `+alertColumns,
		id[:],
		a.Kind,
		a.Org.Bytes(),
		a.Level,
		a.Count,
		a.Title,
		a.Text,
		micros(all.now),
	))
}

// FireAlert begins the alert's next round, and reports whether this call began it, and no
// other process.
func (all *All) FireAlert(ctx context.Context, a flex.Alert) (bool, error) {
	n, err := all.exec(
		ctx,
		`UPDATE alert SET fired_at = COALESCE(fired_at, $2), round = round + 1, snoozed_to = NULL
		WHERE id = $1 AND round = $3 AND resolved_at IS NULL`,
		a.ID.Bytes(),
		micros(all.now),
		a.Round,
	)

	return n > 0, err
}

// EndAlerts ends the alerts whose condition last held before an instant, and returns those
// that had fired. The others are deleted.
func (all *All) EndAlerts(
	ctx context.Context,
	before time.Time,
) ([]flex.Alert, error) {
	_, err := all.exec(
		ctx,
		`DELETE FROM alert WHERE resolved_at IS NULL AND fired_at IS NULL AND latest_at < $1`,
		micros(before),
	)
	if err != nil {
		return nil, err
	}

	return rows(
		ctx,
		all.conn,
		scanAlert,
		`UPDATE alert SET resolved_at = $2 WHERE resolved_at IS NULL AND latest_at < $1 RETURNING `+
			alertColumns,
		micros(before),
		micros(all.now),
	)
}

// AlertWork counts the alerts that have not ended, those that have not fired among them, and the
// heartbeats that are due.
func (all *All) AlertWork(ctx context.Context) (int, error) {
	var n int
	err := all.row(
		ctx,
		`SELECT (SELECT count(*) FROM alert WHERE resolved_at IS NULL)
		+ (SELECT count(*) FROM alert_route WHERE heartbeat_s > 0 AND beat_at + heartbeat_s * 1000000 <= $1)`,
		micros(all.now),
	).Scan(
		&n,
	)

	return n, err
}

// AlertFilter selects alerts.
type AlertFilter struct {
	Firing bool       // those alone that have not ended
	Org    flex.OrgID // zero for any
	Before AlertID    // those that began before it; zero for the newest
	Limit  int
}

// Alerts returns alerts that fired, the newest first; in a context that is limited to some
// organisations, only theirs.
func (all *All) Alerts(ctx context.Context, f AlertFilter) ([]flex.Alert, error) {
	w := &where{}
	w.text.WriteString("fired_at IS NOT NULL")

	if f.Firing {
		w.text.WriteString(" AND resolved_at IS NULL")
	}
	if !f.Org.IsZero() {
		w.text.WriteString(" AND org_id = " + w.param(f.Org.Bytes()))
	}
	if !f.Before.IsZero() {
		w.text.WriteString(" AND id < " + w.param(f.Before.Bytes()))
	}

	w.within(ctx, "org_id")
	limit := w.param(f.Limit)

	return rows(
		ctx,
		all.conn,
		scanAlert,
		`SELECT `+alertColumns+` FROM alert WHERE `+w.text.String()+` ORDER BY id DESC LIMIT `+limit,
		w.args...,
	)
}

// UnroutedAlerts counts the firing alerts that nobody has acknowledged and that no route
// receives, as there is none for all organisations or for theirs, and returns since when the
// first of them has fired. Alerts of one kind are left out.
func (all *All) UnroutedAlerts(
	ctx context.Context,
	org flex.OrgID,
	but string,
) (int, time.Time, error) {
	w := &where{}
	w.text.WriteString("a.fired_at IS NOT NULL AND a.resolved_at IS NULL AND a.acknowledged_at IS NULL")
	w.text.WriteString(" AND a.kind <> " + w.param(but))
	if !org.IsZero() {
		w.text.WriteString(" AND a.org_id = " + w.param(org.Bytes()))
	}

	everybody := w.param(flex.OrgID{}.Bytes())
	var n int
	var first time.Time
	err := all.row(
		ctx,
		`SELECT count(*), min(a.fired_at) FROM alert a WHERE `+w.text.String()+
			` AND NOT EXISTS (SELECT 1 FROM alert_route r WHERE r.org_id = `+everybody+` OR r.org_id = a.org_id)`,
		w.args...,
	).Scan(&n, instant{&first})

	return n, first, err
}

// errNoAlert is returned for an id that is not of a firing alert.
var errNoAlert = flex.Fail(flex.NotFound, "no such alert is firing")

// AlertAnswer is an operator's answer to a firing alert.
type AlertAnswer struct {
	Alert AlertID
	Org   flex.OrgID // whose alert it must be; zero for anybody's
	Who   string
	Text  string
	// until when it is not sent again; zero for no change
	SnoozeTo time.Time
}

// AnswerAlert records who handles a firing alert and, if asked for, until when it is not sent
// again. It returns the changed alert.
func (all *All) AnswerAlert(ctx context.Context, n AlertAnswer) (flex.Alert, error) {
	w := &where{args: []any{
		n.Alert.Bytes(),
		micros(all.now),
		n.Who,
		n.Text,
		micros(n.SnoozeTo),
	}}
	w.text.WriteString("id = $1 AND fired_at IS NOT NULL AND resolved_at IS NULL")
	if !n.Org.IsZero() {
		w.text.WriteString(" AND org_id = " + w.param(n.Org.Bytes()))
	}

	w.within(ctx, "org_id")

	a, err := scanAlert(all.row(
		ctx,
		`UPDATE alert SET acknowledged_at = $2, acknowledged_by = $3, note = $4, snoozed_to = COALESCE($5, snoozed_to)
		WHERE `+w.text.String()+` RETURNING `+alertColumns,
		w.args...,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return a, errNoAlert
	}

	return a, err
}
