package main

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/operations"
	records "flexd/internal/store"
)

// alerts is `flexd alerts`.
type alerts struct {
	List        alertsList   `cmd:"" help:"List alerts, current and ended, and who works on them."`
	Acknowledge alertsAck    `cmd:"" help:"Record that you work on an alert."`
	Snooze      alertsSnooze `cmd:"" help:"Pause an alert for a time; it is sent again if it still fires then. Example: flexd alerts snooze ID --for 2h --note \"the supplier is repairing it\""`
	Rules       alertsRules  `cmd:"" help:"List for which kinds of exception alerts are sent."`
	Rule        alertsRule   `cmd:"" help:"Change from which count, and after how long, an alert is sent for a kind of exception. Example: flexd alerts rule short_of_time --threshold 50 --for 15m"`
	Route       alertsRoute  `cmd:"" help:"Routes by which alerts are sent."`
}

type alertsList struct {
	store
	Ended bool `help:"List alerts that have ended, too."`
	JSON  bool `help:"Print as JSON." name:"json"`
}

// alertRow is an alert as it is printed.
type alertRow struct {
	ID             string     `json:"alert_id"`
	Kind           string     `json:"kind"`
	Level          string     `json:"level"`
	Organisation   string     `json:"organisation_id,omitempty"` // none for all
	Count          int        `json:"count"`
	Title          string     `json:"title"`
	FiredAt        time.Time  `json:"fired_at"`
	ResolvedAt     *time.Time `json:"resolved_at,omitempty"`
	AcknowledgedBy string     `json:"acknowledged_by,omitempty"`
	SnoozedTo      *time.Time `json:"snoozed_until,omitempty"`
	Note           string     `json:"note,omitempty"`
}

func alertRowOf(a flex.Alert) alertRow {
	r := alertRow{
		ID:             a.ID.String(),
		Kind:           a.Kind,
		Level:          a.Level,
		Count:          a.Count,
		Title:          a.Title,
		FiredAt:        a.FiredAt,
		AcknowledgedBy: a.AcknowledgedBy,
		Note:           a.Note,
	}

	if !a.Org.IsZero() {
		r.Organisation = a.Org.String()
	}

	if !a.ResolvedAt.IsZero() {
		r.ResolvedAt = &a.ResolvedAt
	}

	if !a.SnoozedTo.IsZero() {
		r.SnoozedTo = &a.SnoozedTo
	}

	return r
}

// alertPage opens flexd and reads its alerts, rules and routes.
func (s store) alertPage(
	ctx context.Context,
	firing bool,
) (operations.AlertPage, error) {
	h, err := s.open(ctx)
	if err != nil {
		return operations.AlertPage{}, err
	}
	defer h.Close()

	return h.Operations.AlertList(ctx, firing)
}

// Run lists the alerts.
func (o *alertsList) Run(ctx context.Context, c console) error {
	p, err := o.alertPage(ctx, !o.Ended)
	if err != nil {
		return err
	}

	rows := []alertRow{}
	for _, a := range p.Alerts {
		rows = append(rows, alertRowOf(a))
	}

	return list(
		c,
		o.JSON,
		rows,
		"ID\tFIRED\tEND\tLEVEL\tKIND\tCOUNT\tBY\tTITLE",
		func(r alertRow) []any {
			return []any{
				r.ID,
				r.FiredAt,
				r.ResolvedAt,
				r.Level,
				r.Kind,
				r.Count,
				r.AcknowledgedBy,
				r.Title,
			}
		},
	)
}

type alertsAck struct {
	store
	ID   string `arg:"" help:"Id of the alert, as flexd alerts list prints it."`
	Note string `help:"A note for other operators."`
}

// Run acknowledges an alert.
func (o *alertsAck) Run(ctx context.Context, c console) error {
	return o.onAlert(
		ctx,
		c,
		o.ID,
		"acknowledge alert",
		o.Note,
		func(h *app.App, id records.AlertID) error {
			_, err := h.Operations.Acknowledge(ctx, operations.AlertNote{
				Alert: id,
				Who:   commandLine,
				Text:  o.Note,
			})

			return err
		},
	)
}

type alertsSnooze struct {
	store
	ID   string        `arg:"" help:"Id of the alert, as flexd alerts list prints it."`
	For  time.Duration `help:"How long it is paused, a minute to 30 days." required:""`
	Note string        `help:"The reason, for other operators." required:""`
}

// Run lets an alert rest.
func (o *alertsSnooze) Run(ctx context.Context, c console) error {
	return o.onAlert(
		ctx,
		c,
		o.ID,
		"snooze alert",
		o.Note,
		func(h *app.App, id records.AlertID) error {
			message := operations.AlertNote{
				Alert: id,
				Who:   commandLine,
				Text:  o.Note,
			}

			_, err := h.Operations.Snooze(ctx, message, o.For)
			return err
		},
	)
}

// onAlert does something to an alert, and notes it in the audit log.
func (s store) onAlert(
	ctx context.Context,
	c console,
	text, act, note string,
	do func(*app.App, records.AlertID) error,
) error {
	var id records.AlertID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return flex.Fail(flex.Invalid, "%v", err)
	}

	return s.onAlerts(
		ctx,
		c,
		flex.AuditEntry{
			Act:     act,
			Subject: text,
			Detail:  note,
		},
		"",
		"Noted.",
		func(h *app.App) error {
			return do(h, id)
		},
	)
}

// onAlerts does something that concerns the alerts of an organisation, or of all if none is
// named. It writes that to the audit log, and prints a line.
func (s store) onAlerts(
	ctx context.Context,
	c console,
	act flex.AuditEntry,
	subject string,
	message string,
	do func(*app.App) error,
) error {
	h, err := s.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	act.Who = commandLine

	act.Org, err = orgIfNamed(ctx, h, subject)
	if err != nil {
		return err
	}

	err = h.Access.Act(ctx, act, func() error { return do(h) })
	if err == nil && message != "" {
		fmt.Fprintln(c.out, message)
	}

	return err
}

type alertsRules struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

// ruleRow is a rule as it is printed.
type ruleRow struct {
	Kind         string `json:"kind"`
	Organisation string `json:"organisation_id,omitempty"` // none for all
	OrgName      string `json:"organisation,omitempty"`
	Enabled      bool   `json:"enabled"`
	Threshold    int    `json:"threshold"`
	For          string `json:"for"`
	Own          bool   `json:"default"`
}

// Run lists the rules.
func (o *alertsRules) Run(ctx context.Context, c console) error {
	p, err := o.alertPage(ctx, true)
	if err != nil {
		return err
	}

	rows := []ruleRow{}
	for _, r := range p.Rules {
		row := ruleRow{
			Kind:      string(r.Kind),
			Enabled:   r.Enabled,
			Threshold: r.Threshold,
			For:       r.For.String(),
			Own:       r.Own,
		}

		if !r.Org.IsZero() {
			row.Organisation = r.Org.String()
			row.OrgName = nameAmong(p.Orgs, r.Org)
		}

		rows = append(rows, row)
	}

	return list(
		c,
		o.JSON,
		rows,
		"KIND\tORGANISATION\tON\tFROM\tFOR\tDEFAULT",
		func(r ruleRow) []any {
			return []any{
				r.Kind,
				r.OrgName,
				r.Enabled,
				r.Threshold,
				r.For,
				r.Own,
			}
		},
	)
}

type alertsRule struct {
	store
	Kind      string         `arg:"" help:"Kind of exception, as flexd alerts rules prints it."`
	Org       string         `help:"Only exceptions of this organisation; by default those of all." placeholder:"NAME"`
	Threshold *int           `help:"Send an alert if the exception counts at least this many. Without this flag the threshold stays."`
	For       *time.Duration `help:"Send an alert only after the exception has lasted this long. Without this flag the time stays."`
	Off       bool           `help:"Send no alerts for this kind of exception. Without this flag alerts are sent."`
}

// rule returns the rule that is in force (the organisation's, otherwise that for all) with the
// requested changes.
func (o *alertsRule) rule(rules []operations.AlertRule, org flex.OrgID) operations.AlertRule {
	r := operations.AlertRule{Threshold: 1}
	for _, current := range rules {
		general := current.Org.IsZero() && r.Org.IsZero()
		if current.Kind == operations.Kind(o.Kind) && (current.Org == org || general) {
			r = current
		}
	}

	r.Kind, r.Org = operations.Kind(o.Kind), org
	r.Enabled = !o.Off
	if o.Threshold != nil {
		r.Threshold = *o.Threshold
	}

	if o.For != nil {
		r.For = *o.For
	}

	return r
}

// Run sets a rule.
func (o *alertsRule) Run(ctx context.Context, c console) error {
	act := flex.AuditEntry{Act: "set alert rule", Subject: o.Kind}
	return o.onAlerts(
		ctx,
		c,
		act,
		o.Org,
		"The rule holds from the next look, within 15 seconds.",
		func(h *app.App) error {
			org, err := orgIfNamed(ctx, h, o.Org)
			if err != nil {
				return err
			}

			rules, err := h.Operations.AlertRules(ctx)
			if err != nil {
				return err
			}

			return h.Operations.SetAlertRule(ctx, o.rule(rules, org))
		},
	)
}

// orgIfNamed returns the id of the organisation of that name, zero if none is named.
func orgIfNamed(
	ctx context.Context,
	h *app.App,
	name string,
) (flex.OrgID, error) {
	if name == "" {
		return flex.OrgID{}, nil
	}

	return orgIDNamed(ctx, h, name)
}

type alertsRoute struct {
	Add    alertsRouteAdd    `cmd:"" help:"Add a route by which alerts are sent. Example: flexd alerts route add night --kind webhook --to https://example.com/alerts"`
	List   alertsRouteList   `cmd:"" help:"Show the routes."`
	Remove alertsRouteRemove `cmd:"" help:"Remove a route."`
	Test   alertsRouteTest   `cmd:"" help:"Make the running flexd send a test by a route."`
	Sent   alertsRouteSent   `cmd:"" help:"List the latest messages by routes, tests too, and what came of each."`
}

type alertsRouteAdd struct {
	store
	form
	Name      string        `arg:"" help:"A name for the route."`
	Kind      string        `help:"email, webhook (signed), pagerduty (Events v2) or alertmanager (v2)." enum:"email,webhook,pagerduty,alertmanager" required:""`
	To        string        `help:"URL, or e-mail address; PagerDuty's own if not given." placeholder:"URL"`
	Secret    string        `help:"PagerDuty's integration key, or a webhook's signing secret, which is made and printed once if not given. Better in the environment than where ps shows it." env:"FLEXD_ALERT_SECRET" placeholder:"S"`
	Level     string        `help:"The least that is sent: critical or warning." enum:"critical,warning" default:"critical"`
	Org       string        `help:"Name of the organisation whose rules' alerts are sent; all alerts if not given." placeholder:"NAME"`
	Heartbeat time.Duration `help:"Send a sign of life this often, by webhook or to Alertmanager." placeholder:"TIME"`

	AllowPrivateEndpoints reach `help:"Allow http:// URLs and private networks: a list as for flexd serve, or all private networks if no list is given." env:"FLEXD_ALLOW_PRIVATE_ENDPOINTS" placeholder:"LIST"`
}

// Run adds a route.
func (o *alertsRouteAdd) Run(ctx context.Context, c console) error {
	r := records.AlertRoute{
		Name:      o.Name,
		Kind:      o.Kind,
		Target:    o.To,
		Secret:    flex.Secret(o.Secret),
		Level:     o.Level,
		Heartbeat: o.Heartbeat,
	}

	act := flex.AuditEntry{
		Act:     "add alert route",
		Subject: o.Name,
		Detail:  o.Kind,
	}

	message := "Alerts go there from now on; flexd alerts route test sends one."
	if o.Kind == operations.RouteEmail {
		message += " The flexd that serves must have --mail-relay: without one it sends no e-mail."
	}
	if o.JSON {
		message = ""
	}

	err := o.onAlerts(
		ctx,
		c,
		act,
		o.Org,
		message,
		func(h *app.App) error {
			org, err := orgIfNamed(ctx, h, o.Org)
			if err != nil {
				return err
			}

			r.Org = org
			h.Operations.PlainHTTP = o.AllowPrivateEndpoints.Any()
			return h.Operations.AddRoute(ctx, &r)
		},
	)
	if err != nil {
		return err
	}

	return o.printRoute(c, &r)
}

// printRoute prints the secret that was made for a route.
func (o *alertsRouteAdd) printRoute(c console, r *records.AlertRoute) error {
	notice := ""
	if o.Secret == "" {
		notice = r.Secret.Reveal()
	}

	if notice == "" && !o.JSON {
		return nil
	}

	return o.print(
		c,
		fields{"name": r.Name, "kind": r.Kind, "secret": notice},
		"secret  %s\n\nIt is shown this once. It signs each message as it does pushes.\n",
		notice,
	)
}

type alertsRouteList struct {
	store
	JSON bool `help:"Print as JSON." name:"json"`
}

// nameAmong returns the name of the organisation with an id, or the id if it is none of those
// given.
func nameAmong(orgs []flex.Org, id flex.OrgID) string {
	for _, o := range orgs {
		if o.ID == id {
			return o.Name
		}
	}

	return id.String()
}

// routeRow is a route as it is printed.
type routeRow struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	Target       string `json:"to"`
	Level        string `json:"level"`
	Organisation string `json:"organisation_id,omitempty"` // none for all
	OrgName      string `json:"organisation,omitempty"`
	Heartbeat    string `json:"heartbeat,omitempty"`
}

// Run lists the routes.
func (o *alertsRouteList) Run(ctx context.Context, c console) error {
	p, err := o.alertPage(ctx, true)
	if err != nil {
		return err
	}

	rows := []routeRow{}
	for _, r := range p.Routes {
		row := routeRow{
			Name:   r.Name,
			Kind:   r.Kind,
			Target: r.Target,
			Level:  r.Level,
		}

		if !r.Org.IsZero() {
			row.Organisation = r.Org.String()
			row.OrgName = nameAmong(p.Orgs, r.Org)
		}

		if r.Heartbeat > 0 {
			row.Heartbeat = r.Heartbeat.String()
		}

		rows = append(rows, row)
	}

	return list(
		c,
		o.JSON,
		rows,
		"NAME\tKIND\tTO\tLEVEL\tORGANISATION\tHEARTBEAT",
		func(r routeRow) []any {
			return []any{
				r.Name,
				r.Kind,
				r.Target,
				r.Level,
				r.OrgName,
				r.Heartbeat,
			}
		},
	)
}

type alertsRouteRemove struct {
	store
	Name string `arg:"" help:"Name of the route."`
}

// Run deletes a route.
func (o *alertsRouteRemove) Run(ctx context.Context, c console) error {
	return o.onAlerts(
		ctx,
		c,
		flex.AuditEntry{Act: "remove alert route", Subject: o.Name},
		"",
		"Nothing is sent there any more.",
		func(h *app.App) error {
			return h.Operations.DropRoute(ctx, o.Name)
		},
	)
}

type alertsRouteTest struct {
	store
	Name string `arg:"" help:"Name of the route."`
}

// Run queues a test.
func (o *alertsRouteTest) Run(ctx context.Context, c console) error {
	const done = "The flexd that serves sends the test within seconds. flexd alerts route sent, or the console's page Alerts, shows what came of it."
	return o.onAlerts(
		ctx,
		c,
		flex.AuditEntry{Act: "test alert route", Subject: o.Name},
		"",
		done,
		func(h *app.App) error {
			return h.Operations.TestRoute(ctx, o.Name)
		},
	)
}
