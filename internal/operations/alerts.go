package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// alertInterval is how long an exception must be gone before its alert ends. Several processes watch, and an exception
// that only one of them finds, such as a failed job of its own, must not end when another process does not find it.
const alertInterval = time.Minute

// AlertRetention is how long alerts that ended, and what was sent, are kept if nothing else is set.
const AlertRetention = 90 * 24 * time.Hour

// The kinds of messages.
const (
	sayFiring    = "firing"
	sayResolved  = "resolved"
	sayTest      = "test"
	sayHeartbeat = "heartbeat"
)

// WatchAlerts compares the exceptions with the rules: it queues messages when an exception has lasted as
// long as its rule asks, again when a snooze is over, and once when it has ended. Exceptions of a kind that cannot be looked for
// do not stop the others from being sent: the run fails all the same.
func (s *Service) WatchAlerts(ctx context.Context) (worker.Report, error) {
	found, failed := s.compareWithRules(ctx)
	if found.idle {
		return worker.Report{}, failed
	}

	sent := 0
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		sent = 0 // a write may be run again
		routes, err := all.AlertRoutes(ctx)
		if err != nil {
			return err
		}

		for i, a := range found.wrong {
			n, err := raiseAlert(ctx, all, a, found.rules[i], routes)
			if err != nil {
				return err
			}
			sent += n
		}

		if found.whole {
			n, err := endAlerts(ctx, all)
			if err != nil {
				return err
			}
			sent += n
		}

		if failed != nil { // whoever waits for heartbeats is to learn that not all is looked for
			return nil
		}

		n, err := queueHeartbeats(ctx, all)
		sent += n
		return err
	})

	return worker.Report{Count: sent}, errors.Join(err, failed)
}

// endAlerts ends the alerts whose exceptions are gone, and queues messages that say so.
func endAlerts(ctx context.Context, all *store.All) (int, error) {
	ended, err := all.EndAlerts(ctx, all.Now().Add(-alertInterval))
	if err != nil {
		return 0, err
	}

	var sent int
	for _, a := range ended {
		n, err := queueEnded(ctx, all, a)
		if err != nil {
			return sent, err
		}
		sent += n
	}

	return sent, nil
}

// beyondRules are the exceptions that are beyond a rule's threshold.
type beyondRules struct {
	wrong []flex.Alert
	rules []AlertRule // of each of them
	whole bool        // all exceptions could be read, so that an alert without one has ended
	idle  bool        // there is nothing to do
}

// compareWithRules finds the exceptions that are beyond a rule's threshold. What was found comes with an error too.
func (s *Service) compareWithRules(ctx context.Context) (beyondRules, error) {
	var rules []AlertRule
	open := 0

	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		rules, err = alertRules(ctx, all)
		if err != nil {
			return err
		}
		open, err = all.AlertWork(ctx)
		return err
	})
	if err != nil {
		return beyondRules{idle: true}, err
	}

	var failed error
	beyond := beyondRules{whole: true}
	found := map[flex.OrgID][]Exception{}
	for _, r := range rules {
		if !r.Enabled {
			continue
		}

		exceptions, looked := found[r.Org]
		if !looked {
			exceptions, err = s.allExceptions(ctx, r.Org)
			failed = errors.Join(failed, err)
			found[r.Org] = exceptions
			beyond.whole = beyond.whole && err == nil
		}

		if a := sumOf(exceptions, r); a.Count >= r.Threshold {
			beyond.wrong = append(beyond.wrong, a)
			beyond.rules = append(beyond.rules, r)
		}
	}

	beyond.idle = len(beyond.wrong) == 0 && open == 0

	return beyond, failed
}

// allExceptions is Exceptions, and an error if a kind could not be looked for.
func (s *Service) allExceptions(
	ctx context.Context,
	org flex.OrgID,
) ([]Exception, error) {
	found, unread, err := s.Exceptions(ctx, org)
	if err == nil {
		err = whyUnread(unread)
	}

	return found, err
}

// sumOf joins the exceptions of the rule's kind into one alert.
func sumOf(exceptions []Exception, r AlertRule) flex.Alert {
	a := flex.Alert{Kind: string(r.Kind), Org: r.Org}
	more := 0

	for _, e := range exceptions {
		if e.Kind != r.Kind {
			continue
		}

		if a.Title == "" {
			a.Level = string(e.Level)
			a.Title = e.Title
			a.Text = e.Text
		} else {
			more++
		}
		a.Count += e.Count
	}

	if more > 0 {
		a.Title += fmt.Sprintf(", and %d more of the kind", more)
	}

	return a
}

// raiseAlert stores an alert, and queues its messages when it is time.
func raiseAlert(
	ctx context.Context,
	all *store.All,
	wrong flex.Alert,
	rule AlertRule,
	routes []store.AlertRoute,
) (int, error) {
	a, err := all.NoteAlert(ctx, wrong)
	if err != nil || !isTime(a, rule, all.Now()) {
		return 0, err
	}

	first, err := all.FireAlert(ctx, a) // of all processes that watch
	if err != nil || !first {
		return 0, err
	}

	a.Round++
	var sent int
	for _, r := range routes {
		if !reaches(r, a) {
			continue
		}
		if err := all.QueueAlertMessage(ctx, a, r.ID, sayFiring); err != nil {
			return sent, err
		}

		sent++
	}

	return sent, nil
}

// isTime reports whether the alert is to be sent: for the first time, or after a snooze.
func isTime(a flex.Alert, rule AlertRule, now time.Time) bool {
	if a.FiredAt.IsZero() {
		return now.Sub(a.SinceAt) >= rule.For
	}
	return !a.SnoozedTo.IsZero() && !now.Before(a.SnoozedTo)
}

// reaches reports whether a route is sent the alert. A route of one organisation gets what
// rules of that organisation find.
func reaches(r store.AlertRoute, a flex.Alert) bool {
	if r.Level == string(Critical) && a.Level != string(Critical) {
		return false
	}
	return r.Org.IsZero() || r.Org == a.Org
}

// queueEnded queues the message that an alert ended, on the routes that it was sent by.
func queueEnded(
	ctx context.Context,
	all *store.All,
	a flex.Alert,
) (int, error) {
	routes, err := all.AlertedRoutes(ctx, a.ID)
	if err != nil {
		return 0, err
	}

	var sent int
	for _, route := range routes {
		if err := all.QueueAlertMessage(ctx, a, route, sayResolved); err != nil {
			return sent, err
		}
		sent++
	}

	return sent, nil
}

// queueHeartbeats queues the heartbeats that are due.
func queueHeartbeats(ctx context.Context, all *store.All) (int, error) {
	due, err := all.BeatAlertRoutes(ctx)
	var sent int
	for _, r := range due {
		if err := all.QueueAlertMessage(
			ctx,
			flex.Alert{},
			r.ID,
			sayHeartbeat,
		); err != nil {
			return sent, err
		}
		sent++
	}

	return sent, err
}

// purgeMax is how many alerts, and how many messages, are deleted in one transaction.
const purgeMax = 5000

// PurgeAlerts deletes alerts that ended long ago, and their messages.
func (s *Service) PurgeAlerts(ctx context.Context) (worker.Report, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropAlerts(
			ctx,
			all.Now().Add(-cmp.Or(s.Retain, AlertRetention)),
			purgeMax,
		)

		return err
	})

	return worker.Report{Count: int(n), More: n >= purgeMax}, err
}

// TestRoute queues a test message on the route of that name.
func (s *Service) TestRoute(ctx context.Context, name string) error {
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		routes, err := all.AlertRoutes(ctx)
		if err != nil {
			return err
		}

		for _, r := range routes {
			if r.Name == name {
				return all.QueueAlertMessage(ctx, flex.Alert{}, r.ID, sayTest)
			}
		}

		return flex.Fail(flex.NotFound, "there is no route %q", name)
	})
}

// AlertPage is the data of the page of alerts.
type AlertPage struct {
	Alerts []flex.Alert // that fired, the newest first
	Rules  []AlertRule
	Routes []store.AlertRoute // without their secrets
	Sent   []store.SentAlert  // the latest messages
	Orgs   []flex.Org
}

// Bounds of lists.
const alertsMax, sentMax = 200, 50

// AlertList returns the newest alerts and all that fire, or only those that fire, with the rules and routes.
func (s *Service) AlertList(
	ctx context.Context,
	firing bool,
) (AlertPage, error) {
	var p AlertPage
	var err error
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		p.Alerts, err = all.Alerts(ctx, store.AlertFilter{
			Firing: firing,
			Limit:  alertsMax,
		})
		if err != nil {
			return err
		}

		p.Alerts, err = withOlder(ctx, all, p.Alerts)
		if err != nil {
			return err
		}

		p.Rules, err = alertRules(ctx, all)
		if err != nil {
			return err
		}

		p.Rules = slices.DeleteFunc(p.Rules, func(r AlertRule) bool {
			return !r.Org.IsZero() && !store.Reaches(ctx, r.Org)
		})

		p.Routes, err = all.AlertRoutes(ctx)
		if err != nil {
			return err
		}

		for i := range p.Routes {
			p.Routes[i].Secret = ""
		}

		p.Sent, err = all.SentAlerts(ctx, sentMax)
		if err != nil {
			return err
		}

		p.Orgs, err = all.Orgs(ctx)
		return err
	})

	return p, err
}

// withOlder adds to a full list of alerts those before it that have not ended: one that lasts is not hidden by many that came
// and went since.
func withOlder(
	ctx context.Context,
	all *store.All,
	listed []flex.Alert,
) ([]flex.Alert, error) {
	if len(listed) < alertsMax {
		return listed, nil
	}

	older, err := all.Alerts(ctx, store.AlertFilter{
		Firing: true,
		Before: listed[len(listed)-1].ID,
		Limit:  alertsMax,
	})

	return append(listed, older...), err
}

// AlertsOf returns a page of one organisation's alerts that fired, or of all if org is zero, the newest first, or only of those
// that have not ended; and the last one's id if there are more.
func (s *Service) AlertsOf(
	ctx context.Context,
	org flex.OrgID,
	firing bool,
	before flex.AlertID,
	limit int,
) ([]flex.Alert, flex.AlertID, error) {
	var found []flex.Alert
	var err error
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		found, err = all.Alerts(ctx, store.AlertFilter{
			Firing: firing,
			Org:    org,
			Before: before,
			Limit:  limit + 1,
		})

		return err
	})

	var next flex.AlertID
	if len(found) > limit {
		found = found[:limit]
		next = found[limit-1].ID
	}

	return found, next, err
}

// AlertOf reads the id of an alert; NotFound for a text that is not an id.
func AlertOf(text string) (store.AlertID, error) {
	var id store.AlertID
	if id.UnmarshalText([]byte(text)) != nil {
		return id, flex.Fail(
			flex.NotFound,
			"%q is not the id of any alert",
			text,
		)
	}

	return id, nil
}

// Bounds of what an operator says of an alert.
const (
	alertNoteMax = 500
	SnoozeMax    = 30 * 24 * time.Hour
)

// AlertNote is what somebody says of a firing alert.
type AlertNote struct {
	Alert flex.AlertID
	Org   flex.OrgID // whose alert it must be; zero for anybody's
	Who   string
	Text  string
}

// Acknowledge notes who looks after a firing alert, and returns it as it is then.
func (s *Service) Acknowledge(ctx context.Context, n AlertNote) (flex.Alert, error) {
	return s.noteAlert(ctx, n, 0)
}

// Snooze has a firing alert be sent again after a time, if it still fires then. It asks for a
// note: who comes next must know why it is quiet.
func (s *Service) Snooze(
	ctx context.Context,
	n AlertNote,
	by time.Duration,
) (flex.Alert, error) {
	if strings.TrimSpace(n.Text) == "" {
		return flex.Alert{}, flex.Fail(flex.Malformed, "say why the alert may rest")
	}

	if by < time.Minute || by > SnoozeMax {
		return flex.Alert{}, flex.Fail(
			flex.Malformed,
			"an alert may rest for a minute to %d days",
			int(SnoozeMax.Hours()/24),
		)
	}

	return s.noteAlert(ctx, n, by)
}

// noteAlert keeps what is said of an alert. It is not sent again for a time, unless that is zero.
func (s *Service) noteAlert(
	ctx context.Context,
	n AlertNote,
	rest time.Duration,
) (flex.Alert, error) {
	text, err := alertNote(n.Text)
	var a flex.Alert
	if err != nil {
		return a, err
	}

	err = s.DB.WriteAll(ctx, func(all *store.All) error {
		noted := store.AlertAnswer{
			Alert: n.Alert,
			Org:   n.Org,
			Who:   n.Who,
			Text:  text,
		}
		if rest > 0 {
			noted.SnoozeTo = all.Now().Add(rest)
		}

		var err error
		a, err = all.AnswerAlert(ctx, noted)
		return err
	})

	return a, err
}

func alertNote(note string) (string, error) {
	note = strings.TrimSpace(note)
	if len(note) > alertNoteMax {
		return "", flex.Fail(
			flex.Malformed,
			"the note has %d bytes, more than %d",
			len(note),
			alertNoteMax,
		)
	}

	return note, nil
}
