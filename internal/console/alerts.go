package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/operations"
)

// alertsPage lists sent alerts, alert rules and recipients.
type alertsPage struct {
	operations.AlertPage
	Orgs   map[flex.OrgID]string
	Firing int
	Some   bool // the operator is one of some organisations
	Rests  []restChoice
	Export Export
}

// restChoice is a time that an alert may rest.
type restChoice struct {
	Minutes int
	Name    string
}

var restChoices = []restChoice{
	{30, "30 minutes"},
	{120, "2 hours"},
	{480, "8 hours"},
	{1440, "a day"},
	{10080, "a week"},
}

// OrgName is the name of the organisation that an alert, rule or route is of.
func (p *alertsPage) OrgName(id flex.OrgID) string {
	if id.IsZero() {
		return "all"
	}
	return p.Orgs[id]
}

// See returns the page that lists what an alert is about. For an alert of all organisations
// whose list is on the pages of single ones, that is the kind's part of the fleet's page.
func (p *alertsPage) See(a flex.Alert) string {
	kind := operations.Kind(a.Kind)
	if a.Org.IsZero() && slices.Contains(ofOne, kind) {
		return "/console/fleet#" + a.Kind
	}

	return seePath(kind, a.Org)
}

// ofOne are the exceptions whose lists are of one organisation at a time.
var ofOne = []operations.Kind{
	operations.EndpointMissing,
	operations.OrderUnmet,
	operations.InstructionUncalled,
	operations.ProductUnanswered,
	operations.LimitLinkLost,
	operations.LimitExceeded,
	operations.OpenADRSilent,
	operations.PayoutWaiting,
}

func (s *Server) alerts(r *request) (view, error) {
	if err := r.onlyFilters(); err != nil {
		return view{}, err
	}

	known, err := s.Operations.AlertList(r.Context(), false)
	if err != nil {
		return view{}, err
	}

	p := &alertsPage{
		AlertPage: known,
		Orgs:      map[flex.OrgID]string{},
		Rests:     restChoices,
		Some:      r.operator.SomeOrgs,
		Export:    r.exports(),
	}

	for _, o := range known.Orgs {
		p.Orgs[o.ID] = o.Name
	}

	next := ""
	if r.exporting() {
		next, err = s.alertsPart(r, p)
	}

	t := &table{
		Name: "alerts",
		Columns: []string{
			"alert_id", "kind", "level", "organisation", "count", "title", "text", "since", "fired_at", "resolved_at", "acknowledged_by", "acknowledged_at", "snoozed_until", "note",
		},
	}

	for _, a := range p.Alerts {
		t.add(
			a.ID,
			a.Kind,
			a.Level,
			p.OrgName(a.Org),
			a.Count,
			a.Title,
			a.Text,
			a.SinceAt,
			a.FiredAt,
			a.ResolvedAt,
			a.AcknowledgedBy,
			a.AcknowledgedAt,
			a.SnoozedTo,
			a.Note,
		)

		if a.ResolvedAt.IsZero() {
			p.Firing++
		}
	}

	return view{
		page:  "alerts",
		title: "Alerts",
		data:  p,
		table: t,
		next:  next,
	}, err
}

// alertsPart replaces the page's alerts by a part of a file: a file has all alerts, and the
// page only the newest.
func (s *Server) alertsPart(r *request, p *alertsPage) (string, error) {
	var before flex.AlertID
	err := readFilter(&before, r.URL.Query().Get("before"), "alert")
	if err != nil {
		return "", err
	}

	var last flex.AlertID
	p.Alerts, last, err = s.Operations.AlertsOf(
		r.Context(),
		flex.OrgID{},
		false,
		before,
		r.limit(),
	)
	if last.IsZero() {
		return "", err
	}

	return r.with("before", last.String()), err
}

// acknowledge notes that the operator looks after an alert, or lets it rest.
func (s *Server) acknowledge(r *request) (view, error) {
	id, err := operations.AlertOf(r.PathValue("id"))
	if err != nil {
		return view{}, err
	}

	org, err := s.alertOrg(r, id)
	if err != nil {
		return view{}, err
	}

	note, rest := strings.TrimSpace(r.PostFormValue("note")), r.PostFormValue("rest")
	act := access.Action{
		Act:     "acknowledge alert",
		Org:     org,
		Subject: id.String(),
		Detail:  note,
	}

	alertNote := operations.AlertNote{
		Alert: id,
		Who:   r.operator.Name,
		Text:  note,
	}

	do := func() error {
		_, err := s.Operations.Acknowledge(r.Context(), alertNote)
		return err
	}

	if rest != "" {
		minutes, err := strconv.Atoi(rest)
		if err != nil {
			return view{}, flex.Fail(
				flex.Malformed,
				"%q is no number of minutes",
				rest,
			)
		}

		act.Act = "snooze alert"
		do = func() error {
			_, err := s.Operations.Snooze(
				r.Context(),
				alertNote,
				time.Duration(minutes)*time.Minute,
			)

			return err
		}
	}

	return view{to: "/console/alerts?done=noted"}, s.act(r, act, do)
}

// alertOrg returns the organisation of a firing alert. It is zero for an alert of all
// organisations, and for one that does not fire.
func (s *Server) alertOrg(r *request, id flex.AlertID) (flex.OrgID, error) {
	found, _, err := s.Operations.AlertsOf(
		r.Context(),
		flex.OrgID{},
		true,
		flex.AlertID{},
		exportMax,
	)
	for i := range found {
		if found[i].ID == id {
			return found[i].Org, err
		}
	}

	return flex.OrgID{}, err
}

// testRoute sends a test by a route.
func (s *Server) testRoute(r *request) (view, error) {
	name := r.PostFormValue("name")
	err := s.act(r, access.Action{Act: "test alert route", Subject: name}, func() error {
		return s.Operations.TestRoute(r.Context(), name)
	})

	return view{to: "/console/alerts?done=alert-test"}, err
}
