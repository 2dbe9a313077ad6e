package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

// AlertMessage is a message about an alert, by one route.
type AlertMessage struct {
	ID       AlertMessageID
	What     string     // firing, resolved, test, heartbeat
	Alert    flex.Alert // zero for a test or a heartbeat
	Route    AlertRoute
	QueuedAt time.Time
	Tries    int  // with this one
	Early    bool // what is to be said before it was not sent yet

	job Job
}

// QueueAlertMessage has a message sent once the transaction has committed. A message that was
// queued before for the same round of an alert is not queued again.
func (all *All) QueueAlertMessage(
	ctx context.Context,
	a flex.Alert,
	route AlertRouteID,
	what string,
) error {
	id := all.newID()
	n, err := all.exec(
		ctx,
		`INSERT INTO alert_message (id, alert_id, route_id, what, round, queued_at, tries, error)
		VALUES ($1, $2, $3, $4, $5, $6, 0, '') ON CONFLICT DO NOTHING`,
		id[:],
		a.ID.Bytes(),
		route.Bytes(),
		what,
		a.Round,
		micros(all.now),
	)

	if err != nil || n == 0 {
		return err
	}

	all.Wake(WakeAlert)

	return all.queueJobs(
		ctx,
		all.now,
		Job{Kind: JobAlert, Subject: id[:]},
	)
}

// AlertedRoutes returns the routes by which a message that an alert fires was, or is to be,
// sent.
func (all *All) AlertedRoutes(
	ctx context.Context,
	id AlertID,
) ([]AlertRouteID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[AlertRouteID],
		`SELECT DISTINCT route_id FROM alert_message WHERE alert_id = $1 AND what = 'firing'`,
		id.Bytes(),
	)
}

// TakeAlertMessages claims up to limit messages that are due, under a lease. One that cannot
// be read waits, and delays no other.
func (all *All) TakeAlertMessages(
	ctx context.Context,
	limit int,
	lease time.Duration,
) ([]AlertMessage, error) {
	jobs, err := all.claimJobs(
		ctx,
		JobAlert,
		flex.OrgID{},
		all.now,
		limit,
		lease,
	)
	if err != nil {
		return nil, err
	}

	var ms []AlertMessage
	for _, j := range jobs {
		m, err := all.alertMessage(ctx, j)
		switch {
		case err == nil:
			ms = append(ms, m)
		case flex.KindOf(err) == flex.NotFound: // its route was removed
			_, err = all.finishJob(ctx, j)
		default:
			err = all.postponeUnread(ctx, j, all.now, err)
		}

		if err != nil {
			return nil, err
		}
	}

	return ms, nil
}

func (all *All) alertMessage(
	ctx context.Context,
	j Job,
) (AlertMessage, error) {
	const missing = "there is no such message"
	var alert AlertID
	var route AlertRouteID

	m, err := one(
		ctx,
		all.conn,
		missing,
		func(s scanner) (AlertMessage, error) {
			var m AlertMessage
			err := s.Scan(
				&m.ID,
				&alert,
				&route,
				&m.What,
				&m.Alert.Round,
				instant{&m.QueuedAt},
				&m.Tries,
			)

			return m, err
		},
		`SELECT id, alert_id, route_id, what, round, queued_at, tries FROM alert_message WHERE id = $1`,
		j.Subject,
	)

	if err != nil {
		return m, err
	}

	m.job = j
	m.Tries++
	m.Route, err = one(
		ctx,
		all.conn,
		missing,
		all.scanAlertRoute,
		`SELECT `+alertRouteColumns+` FROM alert_route WHERE id = $1`,
		route.Bytes(),
	)

	if err != nil || alert.IsZero() {
		return m, err
	}

	err = all.row(
		ctx,
		`SELECT count(*) > 0 FROM alert_message 
		WHERE alert_id = $1 AND route_id = $2 AND id < $3 AND sent_at IS NULL AND lost_at IS NULL`,
		alert.Bytes(),
		route.Bytes(),
		m.ID.Bytes(),
	).Scan(&m.Early)

	if err != nil {
		return m, err
	}

	m.Alert, err = one(
		ctx,
		all.conn,
		missing,
		scanAlert,
		`SELECT `+alertColumns+` FROM alert WHERE id = $1`,
		alert.Bytes(),
	)

	return m, err
}

// AlertMessageDone records that a message was sent, or given up because of a problem. A
// message that another process has claimed since stays as it is.
func (all *All) AlertMessageDone(
	ctx context.Context,
	m AlertMessage,
	problem string,
) error {
	mine, err := all.endJob(ctx, m.job, all.now, problem)
	if err != nil || !mine {
		return err
	}

	column := "sent_at"
	if problem != "" {
		column = "lost_at"
	}

	_, err = all.exec(
		ctx,
		`UPDATE alert_message SET tries = $2, error = $3, `+column+` = $4 WHERE id = $1`,
		m.ID.Bytes(),
		m.Tries,
		flex.Keepable(problem),
		micros(all.now),
	)

	if err != nil || m.What != "heartbeat" {
		return err
	}

	// A lost heartbeat is not stored as failed: the next one says the same.
	return all.dropJob(ctx, JobAlert, flex.OrgID{}, m.ID.Bytes())
}

// AlertMessageAgain has a message tried again at an instant, because of a problem.
func (all *All) AlertMessageAgain(
	ctx context.Context,
	m AlertMessage,
	at time.Time,
	problem string,
) error {
	mine, err := all.retryJob(ctx, m.job, all.now, at, problem)
	if err != nil || !mine {
		return err
	}

	_, err = all.exec(
		ctx,
		`UPDATE alert_message SET tries = $2, error = $3 WHERE id = $1`,
		m.ID.Bytes(),
		m.Tries,
		flex.Keepable(problem),
	)

	return err
}

// SentAlert is a message with its state.
type SentAlert struct {
	Alert    AlertID // zero for a test or a heartbeat
	Route    string
	What     string
	QueuedAt time.Time
	SentAt   time.Time // zero until it is
	Tries    int
	Error    string
}

// SentAlerts returns the latest messages, the newest first, without heartbeats; in a context
// of some organisations, those by their routes alone.
func (all *All) SentAlerts(
	ctx context.Context,
	limit int,
) ([]SentAlert, error) {
	w := &where{}
	w.text.WriteString("m.what <> 'heartbeat'")
	w.within(ctx, "r.org_id")
	most := w.param(limit)

	return rows(ctx, all.conn, func(s scanner) (SentAlert, error) {
		var m SentAlert
		err := s.Scan(
			&m.Alert,
			&m.Route,
			&m.What,
			instant{&m.QueuedAt},
			instant{&m.SentAt},
			&m.Tries,
			&m.Error,
		)

		return m, err
	}, `SELECT m.alert_id, COALESCE(r.name, '(removed)'), m.what, m.queued_at, m.sent_at, m.tries, m.error
		FROM alert_message m LEFT JOIN alert_route r ON r.id = m.route_id WHERE `+w.text.String()+` ORDER BY m.id DESC LIMIT `+most, w.args...)
}

// DropAlerts deletes messages that were queued before an instant, except those of alerts that
// have not ended, by which the routes for the message of the end are found. Then it deletes
// alerts that ended before the instant. It deletes at most limit of each, and returns how many
// in all.
func (all *All) DropAlerts(
	ctx context.Context,
	before time.Time,
	limit int,
) (int64, error) {
	messages, err := all.exec(
		ctx,
		`DELETE FROM alert_message WHERE id IN (SELECT m.id FROM alert_message m WHERE m.queued_at < $1
			AND NOT EXISTS (SELECT 1 FROM alert a WHERE a.id = m.alert_id AND a.resolved_at IS NULL) ORDER BY m.queued_at LIMIT $2)`,
		micros(before),
		limit,
	)
	if err != nil {
		return 0, err
	}

	alerts, err := all.exec(
		ctx,
		`DELETE FROM alert WHERE id IN (SELECT id FROM alert WHERE resolved_at < $1 LIMIT $2)`,
		micros(before),
		limit,
	)

	return messages + alerts, err
}
