package console

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/wire"
)

// reasonMax is the longest reason of a decision, in bytes.
const reasonMax = 500

// heldPage lists readings that wait for a decision, and the decisions about them.
type heldPage struct {
	Orgs     []flex.Org
	Labels   []flex.Label
	States   []string
	Org      flex.OrgID // filters
	Label    flex.Label
	State    string
	Asset    string
	From     string
	To       string
	Readings []reading.HeldLine
	Total    int
	Next     string
	Export   Export
}

// newHeldPage returns the page with the filters of the request.
func newHeldPage(r *request) *heldPage {
	q := r.URL.Query()
	p := &heldPage{
		Labels: wire.ReadingLabels,
		Label:  flex.Label(q.Get("label")),
		State:  reading.HeldStates[0],
		Asset:  q.Get("asset"),
		States: reading.HeldStates,
		From:   q.Get("from"),
		To:     q.Get("to"),
		Export: r.exports(),
	}

	if q.Has("state") {
		p.State = q.Get("state")
	}

	return p
}

func (s *Server) heldReadings(r *request) (view, error) {
	p := newHeldPage(r)
	if err := r.onlyFilters(
		"state",
		"label",
		"org",
		"asset",
		"from",
		"to",
	); err != nil {
		return view{}, err
	}

	f, err := p.filter(r)
	if err != nil {
		return view{}, err
	}

	found, err := s.Reading.HeldOf(r.Context(), f)
	if err != nil {
		return view{}, err
	}

	p.Orgs, p.Total = found.Orgs, found.Total
	p.Readings = found.Readings
	if len(p.Readings) > r.limit() {
		p.Readings = p.Readings[:r.limit()]
		p.Next = r.with("before", p.Readings[len(p.Readings)-1].ID.String())
	}

	return view{
		page:   "held",
		title:  "Readings held back",
		crumbs: readingsCrumbs,
		data:   p,
		table:  p.table(),
		next:   p.Next,
	}, nil
}

var readingsCrumbs = []crumb{{"Readings", "/console/readings"}}

// filter reads the page's filters. Days are London's, both included.
func (p *heldPage) filter(r *request) (reading.HeldQuery, error) {
	f := reading.HeldQuery{
		Label: p.Label,
		State: flex.HeldState(p.State),
		Limit: r.limit() + 1,
	}

	if p.Label != "" && !slices.Contains(p.Labels, p.Label) {
		return f, flex.Fail(
			flex.Invalid,
			"%q is no label of readings",
			p.Label,
		)
	}

	if p.State != "" && !slices.Contains(p.States, p.State) {
		return f, flex.Fail(
			flex.Invalid,
			"%q is no state of a reading that is held back",
			p.State,
		)
	}

	q := r.URL.Query()
	if err := readFilter(&f.Org, q.Get("org"), "organisation"); err != nil {
		return f, err
	}

	p.Org = f.Org
	if err := readFilter(
		&f.Before,
		q.Get("before"),
		"held reading",
	); err != nil {
		return f, err
	}

	if err := readFilter(&f.Asset, p.Asset, "asset"); err != nil {
		return f, err
	}

	var err error
	f.From, err = dayStart(p.From, 0)
	if err != nil {
		return f, err
	}

	f.To, err = dayStart(p.To, 1)

	return f, err
}

// dayStart returns the start of the day that is a number of days after the day in a filter;
// the zero time if the filter is empty.
func dayStart(text string, after int) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}

	day, err := flex.ParseDay(text)
	if err != nil {
		return time.Time{}, flex.Fail(
			flex.Invalid,
			"a day is written YYYY-MM-DD",
		)
	}

	return day.Add(after).Start(), nil
}

func (p *heldPage) table() *table {
	t := &table{
		Name: "held-readings",
		Columns: []string{
			"id",
			"organisation",
			"asset_id",
			"external_id",
			"label",
			"start_timestamp",
			"end_timestamp",
			"value",
			"reason",
			"detail",
			"held_at",
			"state",
			"decided_at",
		},
	}

	for _, h := range p.Readings {
		t.add(
			h.ID.String(),
			h.OrgName,
			h.AssetID.String(),
			h.AssetName,
			string(h.Label),
			h.From,
			h.To,
			h.Number,
			h.Reason,
			h.Detail,
			h.HeldAt,
			h.State,
			h.DecidedAt,
		)
	}

	return t
}

// heldReading shows one reading, with the forms that decide on it.
func (s *Server) heldReading(r *request) (view, error) {
	var id flex.HeldID
	if err := readID(&id, r.PathValue("id"), "held reading"); err != nil {
		return view{}, err
	}

	l, err := s.Reading.HeldReading(r.Context(), id)

	return view{
		page:   "heldreading",
		title:  "Held reading " + short(id),
		crumbs: append(readingsCrumbs, crumb{"Held back", "/console/readings/held"}),
		data:   l,
		record: l,
	}, err
}

// decideHeld releases or discards a reading, for a reason that the audit log stores. The form
// must confirm the decision.
func (s *Server) decideHeld(r *request) (view, error) {
	decision := r.PathValue("to")
	if decision != "release" && decision != "discard" {
		return view{}, flex.Fail(
			flex.NotFound,
			"a held reading is released or discarded",
		)
	}

	id, org, reason, err := confirmedID(
		r,
		"held reading",
		s.Reading.HeldOrg,
		decision,
	)
	if err != nil {
		return view{}, err
	}

	decisions := map[string]func() error{
		"release": func() error {
			_, err := s.Reading.Release(
				r.Context(),
				org,
				id,
				r.PostFormValue("meter_replaced") != "",
			)

			return err
		},
		"discard": func() error {
			_, err := s.Reading.Discard(r.Context(), org, id)
			return err
		},
	}

	err = s.act(
		r,
		access.Action{
			Act:     decision + " reading",
			Org:     org,
			Subject: id.String(),
			Detail:  reason,
		},
		decisions[decision],
	)

	return view{to: "/console/readings/held?done=" + decision}, err
}

// confirmedDecision returns the reason that a form gives for an act. It fails without a
// reason, and without a confirmation: the given word must be typed, or, if that is "", a box
// must be ticked.
func confirmedDecision(r *request, decision string) (string, error) {
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	if reason == "" || len(reason) > reasonMax || !utf8.ValidString(reason) {
		return "", flex.Fail(
			flex.Malformed,
			"give a reason of 1 to %d bytes: the audit log keeps it",
			reasonMax,
		)
	}

	if decision != "" {
		return reason, checkConfirmation(r, decision)
	}

	if r.PostFormValue("sure") == "" {
		return "", flex.Fail(flex.Malformed, "tick that you are sure")
	}

	return reason, nil
}
