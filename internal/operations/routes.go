package operations

import (
	"context"
	"encoding/json"
	"errors"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// The kinds of route.
const (
	RouteEmail        = "email"
	RouteWebhook      = "webhook"
	RoutePagerDuty    = "pagerduty"
	RouteAlertmanager = "alertmanager"
)

// RouteKinds are all of them.
var RouteKinds = []string{
	RouteEmail,
	RouteWebhook,
	RoutePagerDuty,
	RouteAlertmanager,
}

// pagerDutyURL is where PagerDuty takes events, version 2.
const pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// Limits of sending alerts.
const (
	alertsAtOnce = 20
	alertLease   = 2 * time.Minute
	alertTries   = 12 // over about 80 minutes
	beatTries    = 2  // the next says the same
	alertPause   = 10 * time.Second
	alertWait    = 15 * time.Minute // the longest pause
	nameMax      = 60
	heartbeatMin = time.Minute
)

// AddRoute keeps a route. A webhook without a secret is given one; it is returned in r, and shown
// once. What is wrong with the route is a Malformed failure.
func (s *Service) AddRoute(ctx context.Context, r *store.AlertRoute) error {
	if err := s.checkRoute(r); err != nil {
		return err
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		if !r.Org.IsZero() {
			if _, err := all.For(ctx, r.Org); err != nil {
				return err
			}
		}

		if r.Kind == RouteWebhook && r.Secret == "" {
			key, err := all.RandomBytes(egress.SecretMade)
			if err != nil {
				return err
			}
			r.Secret = egress.NewSecret(key)
		}

		return all.AddAlertRoute(ctx, r)
	})
}

// WarnOfMail logs the routes by e-mail of a process that has no mail relay: it sends nothing by them.
func (s *Service) WarnOfMail(ctx context.Context) error {
	if s.Mail != nil {
		return nil
	}

	var routes []store.AlertRoute
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		routes, err = all.AlertRoutes(ctx)
		return err
	})

	for _, r := range routes {
		if r.Kind == RouteEmail {
			s.log().WarnContext(
				ctx,
				"an alert route sends no e-mail, as this process has no mail relay: give --mail-relay",
				"route",
				r.Name,
			)
		}
	}

	return err
}

// DropRoute deletes the route of a name. What was to be sent by it is not sent.
func (s *Service) DropRoute(ctx context.Context, name string) error {
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.DropAlertRoute(ctx, name)
	})
}

// checkRoute fills in what may be left out, and says what is wrong.
func (s *Service) checkRoute(r *store.AlertRoute) error {
	if r.Level == "" {
		r.Level = string(Critical)
	}

	if r.Kind == RoutePagerDuty && r.Target == "" {
		r.Target = pagerDutyURL
	}

	switch {
	case r.Name == "" || len(r.Name) > nameMax:
		return flex.Fail(
			flex.Malformed,
			"a route's name has 1 to %d bytes",
			nameMax,
		)

	case !slices.Contains(RouteKinds, r.Kind):
		return flex.Fail(
			flex.Malformed,
			"%q is no kind of route: there are %s",
			r.Kind,
			strings.Join(RouteKinds, ", "),
		)

	case r.Level != string(Critical) && r.Level != string(Warning):
		return flex.Fail(flex.Malformed, "a level is critical or warning")

	case r.Heartbeat != 0 && r.Heartbeat < heartbeatMin:
		return flex.Fail(
			flex.Malformed,
			"a heartbeat comes once a minute at most",
		)
	}

	return s.checkTarget(r)
}

// checkTarget says what is wrong with where a route goes, and with its secret.
func (s *Service) checkTarget(r *store.AlertRoute) error {
	if r.Heartbeat != 0 && (r.Kind == RouteEmail || r.Kind == RoutePagerDuty) {
		return flex.Fail(
			flex.Malformed,
			"a heartbeat goes by webhook or to Alertmanager, to what wakes somebody when it stays away",
		)
	}

	if r.Kind == RouteEmail {
		if _, err := mail.ParseAddress(r.Target); err != nil {
			return flex.Fail(
				flex.Malformed,
				"%q is no e-mail address",
				r.Target,
			)
		}

		return noSecret(r)
	}

	u, err := url.Parse(r.Target)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return flex.Fail(
			flex.Malformed,
			"the address is no URL such as https://example.com/alerts",
		)
	}

	plain := s.PlainHTTP && u.Scheme == "http"
	if u.Scheme != "https" && !plain {
		return flex.Fail(
			flex.Malformed,
			"the address must begin with https://; http:// is for private networks, where the operator allows it (--allow-private-endpoints)",
		)
	}

	if r.Kind == RoutePagerDuty && r.Secret == "" {
		return flex.Fail(
			flex.Malformed,
			"PagerDuty asks for the integration key of its service",
		)
	}

	if r.Kind == RouteAlertmanager {
		return noSecret(r)
	}

	if r.Kind == RouteWebhook && r.Secret != "" {
		if _, err := egress.SecretKey(r.Secret); err != nil {
			return flex.Fail(flex.Malformed, "%v", err)
		}
	}

	return nil
}

func noSecret(r *store.AlertRoute) error {
	if r.Secret != "" {
		return flex.Fail(
			flex.Malformed,
			"a route of the kind %s has no secret",
			r.Kind,
		)
	}

	return nil
}

// SendAlerts sends the messages that are due, beside each other: a route that does not answer
// keeps no other waiting. One that is not taken is tried again, ever later, for about two hours.
func (s *Service) SendAlerts(ctx context.Context) (worker.Report, error) {
	var ms []store.AlertMessage
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		ms, err = all.TakeAlertMessages(ctx, alertsAtOnce, alertLease)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	var senders sync.WaitGroup
	errs := make([]error, len(ms))
	for i, m := range ms {
		senders.Go(func() { errs[i] = s.deliver(ctx, m) })
	}

	senders.Wait()

	return worker.Report{
		Count: len(ms),
		More:  len(ms) == alertsAtOnce,
	}, errors.Join(errs...)
}

// deliver sends a message once and notes what came of it.
func (s *Service) deliver(
	ctx context.Context,
	m store.AlertMessage,
) (err error) {
	defer flex.Recover(&err)

	problem := "what comes before it was not sent yet"
	if !m.Early {
		problem = s.attempt(ctx, m)
	}

	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return concluded(ctx, all, m, problem)
	})
}

// concluded notes what came of a message.
func concluded(
	ctx context.Context,
	all *store.All,
	m store.AlertMessage,
	problem string,
) error {
	tries := alertTries
	if m.What == sayHeartbeat {
		tries = beatTries
	}

	if problem == "" || m.Tries >= tries {
		return all.AlertMessageDone(ctx, m, problem)
	}

	return all.AlertMessageAgain(
		ctx,
		m,
		all.Now().Add(min(alertPause<<(m.Tries-1), alertWait)),
		problem,
	)
}

// attempt sends a message. A panic is what went wrong with it, so that it is not sent without end.
func (s *Service) attempt(ctx context.Context, m store.AlertMessage) (problem string) {
	var failed error
	defer func() {
		if failed != nil {
			problem, _, _ = strings.Cut(failed.Error(), "\n")
		}
	}()
	defer flex.Recover(&failed)

	return s.send(ctx, m)
}

// send sends a message once and says what went wrong, "" if nothing did.
func (s *Service) send(ctx context.Context, m store.AlertMessage) string {
	if m.Route.Kind == RouteEmail {
		if s.Mail == nil {
			return "this flexd has no mail relay"
		}

		subject, text := emailOf(m, s.alertPage())
		err := s.Mail(ctx, flex.Personal(m.Route.Target), subject, text)
		if err != nil {
			return strings.ReplaceAll(
				err.Error(),
				m.Route.Target,
				"the recipient",
			)
		}

		return ""
	}

	r, err := s.requestOf(m)
	if err != nil {
		return err.Error()
	}

	a, err := s.Out.Do(ctx, r)
	if a.Status >= 200 && a.Status < 300 {
		return "" // also where the answer could not be read whole
	}

	if err != nil {
		return err.Error()
	}

	return "it answered " + strconv.Itoa(a.Status)
}

// alertPage is where the console lists alerts, "" if that is not known.
func (s *Service) alertPage() string {
	if s.BaseURL == "" {
		return ""
	}

	return strings.TrimSuffix(s.BaseURL, "/") + "/console/alerts"
}

// requestOf is a message as its route's kind wants it.
func (s *Service) requestOf(m store.AlertMessage) (egress.Request, error) {
	var body any
	switch m.Route.Kind {
	case RoutePagerDuty:
		body = pagerDutyEvent(m, s.alertPage())
	case RouteAlertmanager:
		body = []postable{alertmanagerAlert(m, s.alertPage())}
	default:
		body = hookOf(m, s.alertPage())
	}

	b, err := json.Marshal(body)
	r := egress.Request{
		Method: "POST",
		URL:    m.Route.Target,
		Header: map[string]string{"Content-Type": "application/json"},
		Body:   b,
	}

	if err != nil || m.Route.Kind != RouteWebhook {
		return r, err
	}

	key, err := egress.SecretKey(m.Route.Secret)
	if err != nil {
		return r, err
	}

	at := s.DB.Now()
	r.Header["Webhook-Id"] = m.ID.String()
	r.Header["Webhook-Timestamp"] = strconv.FormatInt(at.Unix(), 10)
	r.Header["Webhook-Signature"] = egress.Signature(
		[][]byte{key},
		m.ID.String(),
		at,
		b,
	)

	return r, nil
}
