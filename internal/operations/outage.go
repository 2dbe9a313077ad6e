package operations

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// outageFor is how long the database must have failed before an alert is sent without it: most failovers are over
// by then.
const outageFor = time.Minute

// outageAlert is the id of each alert that is sent without the database: whoever merges alerts by their id merges
// those of several processes.
var outageAlert = flex.AlertID(uuid.MustParse("f1e8d000-0000-7000-8000-0000da7aba5e"))

const outageText = "Requests that need the database are answered with 503, and nothing that was acknowledged is lost. " +
	"It goes on by itself once the cause ends. The log of flexd has the reason. " +
	"Other alerts wait until the database works again; this one was sent without it, and cannot be acknowledged in flexd."

// outage is what a process keeps in memory in order to send an alert while the database fails. It is used by one
// background job alone.
type outage struct {
	routes []store.AlertRoute // that get it, as they were last read
	rule   AlertRule          // of a failing database, likewise

	alert    flex.Alert      // the latest; its SinceAt is zero before the first
	messages []outageMessage // of the alert, for one route each
}

type outageMessage struct {
	store.AlertMessage
	taken bool
}

// WatchDatabase sends an alert without the database once it has failed for a minute, and another when it works
// again. All other alerts are queued in the database, and wait until then. Each process sends its own.
func (s *Service) WatchDatabase(ctx context.Context) (worker.Report, error) {
	problem := s.databaseProblem(ctx)
	if ctx.Err() != nil {
		return worker.Report{}, ctx.Err()
	}

	now := s.DB.Now()
	what := s.outage.update(problem, now)
	if err := s.queueOutage(what, now); err != nil {
		return worker.Report{}, err
	}

	return worker.Report{Count: s.sendOutage(ctx)}, nil
}

// databaseProblem says what keeps the database from its work at this moment, "" for nothing. It is written to only
// where a failure was met lately.
func (s *Service) databaseProblem(ctx context.Context) string {
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		routes, err := all.AlertRoutes(ctx)
		if err != nil {
			return err
		}

		rules, err := alertRules(ctx, all)
		if err != nil {
			return err
		}

		s.outage.remember(routes, rules)

		return nil
	})

	if err == nil && s.trouble() != nil {
		err = s.DB.TryToWrite(ctx)
	}
	if err == nil {
		return ""
	}

	s.log().Error("the database fails", "err", err)
	if t := s.trouble(); t != nil {
		return t.What
	}

	return "it cannot be reached, or does not answer"
}

// remember keeps what an alert needs that is sent without the database: the rule for all organisations, and the
// routes that get its alerts.
func (o *outage) remember(routes []store.AlertRoute, rules []AlertRule) {
	for _, r := range rules {
		if r.Kind == DatabaseFailing && r.Org.IsZero() {
			o.rule = r
		}
	}

	o.routes = slices.DeleteFunc(routes, func(r store.AlertRoute) bool {
		return !r.Org.IsZero()
	})
}

// update notes what keeps the database from its work, "" for nothing, and returns the kind of message that is to be sent
// now, "" for none.
func (o *outage) update(problem string, now time.Time) string {
	open := !o.alert.SinceAt.IsZero() && o.alert.ResolvedAt.IsZero()
	fired := open && !o.alert.FiredAt.IsZero()

	if problem == "" {
		if !open {
			return ""
		}

		o.alert.ResolvedAt = now
		if fired {
			return sayResolved
		}

		return ""
	}

	if !open {
		o.alert = flex.Alert{
			ID:      outageAlert,
			Kind:    string(DatabaseFailing),
			Level:   string(Critical),
			Count:   1,
			Text:    outageText,
			SinceAt: now,
		}
	}

	due := o.alert.SinceAt.Add(max(o.rule.For, outageFor))
	if fired || !o.rule.Enabled || now.Before(due) {
		return ""
	}

	o.alert.Title = "The database does not do its work: " + problem
	o.alert.FiredAt = now

	return sayFiring
}

// queueOutage has the alert sent by each route, or its end by those that took it.
func (s *Service) queueOutage(what string, now time.Time) error {
	o := &s.outage
	to := o.routes
	switch what {
	case "":
		return nil

	case sayResolved:
		to = nil
		for _, m := range o.messages {
			if m.taken {
				to = append(to, m.Route)
			}
		}
	}

	o.messages = nil
	for _, route := range to {
		var random [10]byte
		if _, err := io.ReadFull(s.DB.Random(), random[:]); err != nil {
			return err
		}

		o.messages = append(o.messages, outageMessage{AlertMessage: store.AlertMessage{
			ID:       flex.MakeID[store.AlertMessage](now, random),
			What:     what,
			Alert:    o.alert,
			Route:    route,
			QueuedAt: now,
		}})
	}

	return nil
}

// sendOutage sends what was not taken yet, once, and returns how many were taken.
func (s *Service) sendOutage(ctx context.Context) int {
	var sent int
	for i := range s.outage.messages {
		m := &s.outage.messages[i]
		if m.taken || m.Tries >= alertTries {
			continue
		}

		m.Tries++
		problem := s.send(ctx, m.AlertMessage)
		if problem == "" {
			m.taken = true
			sent++
			continue
		}

		s.log().Error(
			"a route did not take the alert that the database fails",
			"route",
			m.Route.Name,
			"err",
			problem,
		)
	}

	return sent
}
