package operations

import (
	"fmt"
	"strings"
	"time"

	"flexd/internal/store"
)

// hook is an alert as a webhook tells it.
type hook struct {
	// alert.firing, alert.resolved, alert.test, alert.heartbeat
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      *hookData `json:"data,omitempty"` // none of a test or a heartbeat
}

type hookData struct {
	AlertID      string `json:"alert_id"`
	Kind         string `json:"kind"`
	Level        string `json:"level"`
	Organisation string `json:"organisation_id,omitempty"` // none for all
	Count        int    `json:"count"`
	// the console's page of alerts; none where its address is not known
	Page       string     `json:"page,omitempty"`
	Title      string     `json:"title"`
	Text       string     `json:"text"`
	Since      time.Time  `json:"since"`
	FiredAt    time.Time  `json:"fired_at"`
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
}

func hookOf(m store.AlertMessage, page string) hook {
	h := hook{
		Type:      "alert." + m.What,
		Timestamp: m.QueuedAt,
	}

	a := m.Alert
	if a.ID.IsZero() {
		return h
	}

	h.Data = &hookData{
		AlertID: a.ID.String(),
		Kind:    a.Kind,
		Level:   a.Level,
		Count:   a.Count,
		Page:    page,
		Title:   a.Title,
		Text:    a.Text,
		Since:   a.SinceAt,
		FiredAt: a.FiredAt,
	}

	if !a.Org.IsZero() {
		h.Data.Organisation = a.Org.String()
	}
	if m.What == sayResolved {
		h.Data.ResolvedAt = &a.ResolvedAt
	}

	return h
}

// pagerDuty is an event of PagerDuty's Events API, version 2.
type pagerDuty struct {
	RoutingKey string            `json:"routing_key"`
	Action     string            `json:"event_action"` // trigger, resolve
	DedupKey   string            `json:"dedup_key"`
	Client     string            `json:"client"`
	ClientURL  string            `json:"client_url,omitempty"`
	Payload    *pagerDutyPayload `json:"payload,omitempty"` // of a trigger
}

type pagerDutyPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"` // critical, error, warning, info
	Timestamp time.Time      `json:"timestamp"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

// summaryMax is how many bytes PagerDuty takes of a summary.
const summaryMax = 1024

func pagerDutyEvent(m store.AlertMessage, page string) pagerDuty {
	e := pagerDuty{
		RoutingKey: m.Route.Secret.Reveal(),
		Action:     "trigger",
		Client:     "flexd",
		ClientURL:  page,
		DedupKey:   m.Alert.ID.String(),
	}

	if m.What == sayResolved {
		e.Action = "resolve"
		return e
	}

	if m.Alert.ID.IsZero() {
		e.DedupKey = m.ID.String()
		e.Payload = &pagerDutyPayload{
			Summary:   "A test of flexd's alerts",
			Source:    "flexd",
			Severity:  "info",
			Timestamp: m.QueuedAt,
		}

		return e
	}

	a := m.Alert
	e.Payload = &pagerDutyPayload{
		Summary:   a.Title[:min(len(a.Title), summaryMax)],
		Source:    "flexd",
		Severity:  a.Level,
		Timestamp: a.FiredAt,
		Class:     a.Kind,
		Details: map[string]any{
			"count": a.Count,
			"text":  a.Text,
			"since": a.SinceAt,
		},
	}

	return e
}

// postable is an alert of Alertmanager's API, version 2.
type postable struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Generator   string            `json:"generatorURL,omitempty"`
}

// Alertmanager ends an alert by itself at endsAt. flexd says when one has ended, so that is far
// off, also of one that is sent again after snoozes; a heartbeat ends soon, so that one that stays away is noticed.
const (
	endsFarOff = 365 * 24 * time.Hour
	testEnds   = 5 * time.Minute
)

func alertmanagerAlert(m store.AlertMessage, page string) postable {
	a := m.Alert
	if a.ID.IsZero() {
		name, ends := "FlexdTest", testEnds
		if m.What == sayHeartbeat {
			name, ends = "FlexdHeartbeat", 3*m.Route.Heartbeat
		}

		return postable{
			Labels:      map[string]string{"alertname": name, "severity": "none"},
			Annotations: map[string]string{"summary": "flexd is well enough to send this"},
			StartsAt:    m.QueuedAt,
			EndsAt:      m.QueuedAt.Add(ends),
		}
	}

	p := postable{
		Labels: map[string]string{
			"alertname": "Flexd",
			"kind":      a.Kind,
			"severity":  a.Level,
		},
		Annotations: map[string]string{"summary": a.Title, "description": a.Text},
		StartsAt:    a.FiredAt, EndsAt: m.QueuedAt.Add(endsFarOff),
		Generator: page,
	}

	if !a.Org.IsZero() {
		p.Labels["organisation"] = a.Org.String()
	}
	if m.What == sayResolved {
		p.EndsAt = a.ResolvedAt
	}

	return p
}

// emailOf is an alert as an e-mail.
func emailOf(m store.AlertMessage, page string) (subject, text string) {
	a := m.Alert
	switch {
	case a.ID.IsZero():
		return "flexd: a test of alerts", "This is a test. Alerts of flexd reach you here.\n"
	case m.What == sayResolved:
		subject = "flexd: resolved: " + a.Kind
	default:
		subject = fmt.Sprintf("flexd: %s: %s", a.Level, a.Kind)
	}

	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%s\n\n%s\n\nSince %s",
		a.Title,
		a.Text,
		instantText(a.SinceAt),
	)

	if m.What == sayResolved {
		fmt.Fprintf(&b, ", until %s", instantText(a.ResolvedAt))
	}
	b.WriteString(".\n")

	if a.ID != outageAlert {
		fmt.Fprintf(
			&b,
			"Alert %s. Acknowledge it in the console under Alerts, or with flexd alerts acknowledge.\n",
			a.ID,
		)
	}

	if page != "" {
		fmt.Fprintln(&b, page)
	}

	return subject, b.String()
}
