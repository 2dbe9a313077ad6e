package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/operations"
)

// deliveriesPage lists the pushes to clients with their states.
type deliveriesPage struct {
	Orgs       []flex.Org
	Org        flex.OrgID // filters
	Asset      flex.AssetID
	State      string
	Endpoint   string
	Model      string
	Firmware   string
	GSPGroup   string
	Status     string
	Sort       string
	Late       bool // those alone that have waited for long
	Orders     []order
	Endpoints  []endpointLine
	Failures   delivery.Failures
	Failed     []failureTable
	States     []string
	Names      []string // of endpoints
	Deliveries []delivery.Line
	Total      string // on all pages, in words
	Next       string
	Saved      savedViews
	Export     Export
}

// deliveriesJSON is the page for programs.
type deliveriesJSON struct {
	Endpoints []endpointLine    `json:"endpoints"`
	Failures  delivery.Failures `json:"failures"`
	// on all pages; 100,001 where there are more than 100,000
	Total int `json:"total"`
	listing
}

// endpointLine is an endpoint with its figures.
type endpointLine struct {
	delivery.EndpointView
	Share string `json:"-"` // taken of those tried
}

func (s *Server) deliveries(r *request) (view, error) {
	filter, err := readDeliveriesFilter(r)
	if err != nil {
		return view{}, err
	}

	if filter.Sort != "" && r.exporting() && !r.URL.Query().Has("limit") {
		return s.sortedDeliveries(r, filter)
	}

	return s.deliveriesList(r, filter)
}

// deliveriesList is a page of the list, with the endpoints' figures.
func (s *Server) deliveriesList(r *request, filter delivery.Filter) (view, error) {
	p := newDeliveriesPage(r, &filter)
	found, err := s.Push.Overview(r.Context(), filter)
	if err != nil {
		return view{}, err
	}

	p.addOverview(found)
	p.Saved, err = s.viewsOf(r.Context(), r, p.Orgs)
	if err != nil {
		return view{}, err
	}

	p.Failures, p.Failed = found.Failures, failureTables(r, &found.Failures)
	if len(p.Deliveries) > r.limit() {
		p.Deliveries = p.Deliveries[:r.limit()]
		last := p.Deliveries[len(p.Deliveries)-1]
		key := strconv.FormatInt(last.Key, 10)
		p.Next = r.with("before", cursor(last.ID.String(), key, filter.Sort))
	}

	t := p.table()
	record := deliveriesJSON{p.Endpoints, p.Failures, found.Total, listing{t.objects(), p.Next}}

	return view{
		page:   "deliveries",
		title:  "Deliveries",
		data:   p,
		table:  t,
		next:   p.Next,
		record: record,
	}, nil
}

// sortedDeliveries downloads the whole list in a chosen order. Many deliveries are sorted at
// once, and then read in parts.
func (s *Server) sortedDeliveries(r *request, filter delivery.Filter) (view, error) {
	filter.Limit = sortedPushes.sorted
	places, err := s.Push.Places(r.Context(), filter)
	if err != nil {
		return view{}, err
	}

	var after func() (view, error)
	if len(places) == filter.Limit {
		last := places[len(places)-1]
		filter.Before, filter.Key = last.ID, last.Key
		after = func() (view, error) { return s.sortedDeliveries(r, filter) }
	}

	return s.deliveriesPart(r, places, after)
}

// deliveriesPart returns the first part of the deliveries at some positions. The others follow
// in further parts, and after them the continuation, if that is not nil.
func (s *Server) deliveriesPart(
	r *request,
	places []delivery.Place,
	after func() (view, error),
) (view, error) {
	n := min(len(places), sortedPushes.read)
	var p deliveriesPage
	var err error
	p.Deliveries, err = s.Push.At(r.Context(), places[:n])
	v := view{table: p.table(), rest: after}
	if n < len(places) {
		v.rest = func() (view, error) { return s.deliveriesPart(r, places[n:], after) }
	}

	return v, err
}

func newDeliveriesPage(r *request, filter *delivery.Filter) *deliveriesPage {
	return &deliveriesPage{
		Org:      filter.Org,
		Asset:    filter.Asset,
		State:    filter.State,
		Endpoint: filter.Endpoint,
		Model:    filter.Model,
		Firmware: filter.Firmware,
		GSPGroup: filter.GSPGroup,
		Status:   r.URL.Query().Get("status"),
		Sort:     filter.Sort,
		Orders:   orders(delivery.Orders),
		Late:     filter.WaitingFor > 0,
		Export:   r.exports(),
		States:   delivery.States,
		Names:    endpointNames,
	}
}

// endpointNames returns the endpoints that can be chosen.
var endpointNames = []string{
	string(flex.ScheduleEndpoint),
	string(flex.DispatchEndpoint),
	string(flex.InvitationEndpoint),
}

// readDeliveriesFilter reads the filters.
func readDeliveriesFilter(r *request) (delivery.Filter, error) {
	var f delivery.Filter
	if err := r.onlyFilters(
		"state",
		"endpoint",
		"org",
		"asset",
		"model",
		"firmware",
		"gsp_group",
		"status",
		"late",
		"sort",
	); err != nil {
		return f, err
	}

	q := r.URL.Query()
	f = delivery.Filter{
		State:    q.Get("state"),
		Endpoint: q.Get("endpoint"),
		Limit:    r.limit() + 1,
		Figures:  !r.exporting(),
		Model:    q.Get("model"),
		Firmware: q.Get("firmware"),
		GSPGroup: q.Get("gsp_group"),
		Sort:     q.Get("sort"),
	}

	if late := q.Get("late"); late == "yes" {
		filterLate(&f)
	} else if late != "" {
		return f, flex.Fail(flex.Invalid, "late is yes, or left out, not %q", late)
	}

	if err := knownPushes(&f); err != nil {
		return f, err
	}

	if text := q.Get("status"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 0 || status > 999 {
			return f, flex.Fail(
				flex.Invalid,
				"status is the HTTP status of the latest answer, such as 503, or 0 for no answer, not %q",
				text,
			)
		}
		f.Status = &status
	}

	if err := readFilter(&f.Org, q.Get("org"), "organisation"); err != nil {
		return f, err
	}
	if err := readDeliveryOrder(&f, q.Get("before")); err != nil {
		return f, err
	}

	err := readFilter(&f.Asset, q.Get("asset"), "asset")

	return f, err
}

// knownPushes refuses a state or an endpoint that does not exist.
func knownPushes(f *delivery.Filter) error {
	if f.State != "" && !slices.Contains(delivery.States, f.State) {
		return flex.Fail(
			flex.Invalid,
			"there is no state %q of a push: there are %s",
			f.State,
			strings.Join(delivery.States, ", "),
		)
	}

	if f.Endpoint != "" && !slices.Contains(endpointNames, f.Endpoint) {
		return flex.Fail(
			flex.Invalid,
			"there is no endpoint %q: there are %s",
			f.Endpoint,
			strings.Join(endpointNames, ", "),
		)
	}

	return nil
}

// filterLate limits the list to the pushes that the exception counts.
func filterLate(f *delivery.Filter) {
	f.WaitingFor = operations.LateAfter
	f.State = string(flex.DeliveryPending)
}

// readDeliveryOrder reads where a page of the order begins.
func readDeliveryOrder(f *delivery.Filter, cursor string) error {
	by := strings.TrimPrefix(f.Sort, "-")
	if f.Sort != "" && !slices.Contains(delivery.Orders, by) {
		return flex.Fail(
			flex.Invalid,
			"a list of pushes is not sorted by %q: it is by %s, or one of them with - before it",
			by,
			strings.Join(delivery.Orders, ", "),
		)
	}

	before, key := cutCursor(cursor, f.Sort)
	var err error
	if key != "" {
		f.Key, err = strconv.ParseInt(key, 10, 64)
	}

	if err != nil {
		return flex.Fail(
			flex.Invalid,
			"before is the one that a page's next has, and goes with its sort; %q is no number",
			key,
		)
	}

	return readFilter(&f.Before, before, "push")
}

func (p *deliveriesPage) table() *table {
	t := &table{
		Name: "deliveries",
		Columns: []string{
			"event_id",
			"organisation",
			"endpoint",
			"kind",
			"asset_id",
			"external_id",
			"generation",
			"state",
			"queued_at",
			"tries",
			"last_at",
			"last_took_ms",
			"last_status",
			"last_error",
			"callback",
		},
	}

	for _, d := range p.Deliveries {
		asset := ""
		if !d.AssetID.IsZero() {
			asset = d.AssetID.String()
		}

		t.add(
			d.ID.String(),
			d.OrgName,
			d.Endpoint,
			d.Kind,
			asset,
			d.AssetName,
			d.Generation,
			string(d.State),
			d.QueuedAt,
			d.Tries,
			d.Last.At,
			d.Last.Took.Milliseconds(),
			d.Last.Status,
			d.Last.Error,
			string(d.Callback),
		)
	}

	return t
}

// failureTable is a table of failures by one possible cause; each row links to its pushes.
type failureTable struct {
	By   string
	Rows []failureRow
}

type failureRow struct {
	delivery.Failure
	Link string // "" if the list has no filter for it
}

func failureTables(r *request, f *delivery.Failures) []failureTable {
	tables := []failureTable{}
	add := func(by, filter string, found []delivery.Failure) {
		t := failureTable{By: by}
		for _, x := range found {
			row := failureRow{Failure: x}
			if x.Filter != "" {
				q := r.URL.Query()
				q.Del("before")
				q.Del("done")
				q.Set(filter, x.Filter)
				row.Link = r.URL.Path + "?" + q.Encode()
			}

			t.Rows = append(t.Rows, row)
		}

		tables = append(tables, t)
	}

	add("Cause", "status", f.Cause)
	add("Model", "model", f.Model)
	add("Firmware", "firmware", f.Firmware)
	add("GSP group", "gsp_group", f.Region)
	add("Endpoint", "endpoint", f.Endpoint)

	return tables
}

// readFilter is readID of a filter, which may be empty.
func readFilter[Of any](to *flex.ID[Of], text, label string) error {
	if text == "" {
		return nil
	}
	return readID(to, text, label)
}

// addOverview sets the page's data.
func (p *deliveriesPage) addOverview(found delivery.Overview) {
	p.Orgs, p.Deliveries = found.Orgs, found.Deliveries
	p.Total = count(min(found.Total, delivery.CountedMax), "push")
	if found.Total > delivery.CountedMax {
		p.Total = "More than " + p.Total
	}

	for _, e := range found.Endpoints {
		l := endpointLine{EndpointView: e, Share: "–"}
		if l.Tried > 0 {
			l.Share = decimals(100*float64(l.Taken)/float64(l.Tried), 1) + " %"
		}
		p.Endpoints = append(p.Endpoints, l)
	}
}

// deliveryPage is one push with its attempts and reports.
type deliveryPage struct {
	delivery.View
	Text string // the body, laid out to be read
}

// UntriedTitle is the heading for a push without an attempt.
func (p deliveryPage) UntriedTitle() string {
	if p.State == string(flex.DeliveryPending) {
		return "It was not tried yet."
	}
	return "There is no record of an attempt."
}

// Untried explains why there is no attempt, by the push's state. A push that was replaced
// before its first attempt has no page.
func (p deliveryPage) Untried() string {
	if p.State == string(flex.DeliveryExpired) {
		return "Its time was over before it could be sent."
	}
	if p.State != string(flex.DeliveryPending) {
		return "Its attempts are not kept any more."
	}

	waits := "It waits for its endpoint, or for its turn there."
	if p.URL == "" {
		waits = "No " + p.Endpoint + " endpoint is set: flexd endpoint set, or PUT /endpoints/" + p.Endpoint + "."
	}

	if p.Kind == "dispatch" {
		waits += " Once its time is over it is not sent any more."
	}

	return waits
}

func (s *Server) delivery(r *request) (view, error) {
	var id flex.EventID
	if err := readID(&id, r.PathValue("id"), "push"); err != nil {
		return view{}, err
	}

	var p deliveryPage
	var err error
	p.View, err = s.Push.DeliveryView(r.Context(), id)
	if err != nil {
		return view{}, err
	}

	var b bytes.Buffer
	if json.Indent(&b, p.Body, "", "  ") == nil {
		p.Text = b.String()
	}

	crumbs := []crumb{{"Deliveries", "/console/deliveries"}}

	if p.AssetName != "" {
		crumbs = append(crumbs, crumb{
			p.AssetName,
			"/console/assets/" + p.AssetID.String(),
		})
	}

	return view{
		page:   "delivery",
		title:  "Push " + short(id),
		crumbs: crumbs,
		data:   p,
		record: p.View,
	}, nil
}

// replay sends a push once more.
func (s *Server) replay(r *request) (view, error) {
	id, org, err := pathID(r, "push", s.Push.OrgOf)
	if err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "replay push",
			Org:     org,
			Subject: id.String(),
		},
		func() error {
			return s.Push.Replay(r.Context(), org, id)
		},
	)

	return view{
		to: "/console/deliveries/" + id.String() + "?done=replayed",
	}, err
}

// endpointAct is an action on an endpoint.
func (s *Server) endpointAct(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	name := flex.EndpointName(r.PathValue("name"))
	act := access.Action{
		Org:     org,
		Subject: fmt.Sprintf("%s endpoint", name),
	}

	switch r.PathValue("act") {
	case "test":
		var id flex.EventID
		act.Act = "send test push"
		err := s.act(r, act, func() error {
			var err error
			id, err = s.Push.Test(r.Context(), org, name)
			return err
		})
		if err == nil {
			_, err = s.Push.Await(r.Context(), org, id, testWait)
		}

		return view{to: "/console/deliveries/" + id.String()}, err
	case "rotate":
		act.Act = "rotate secret"
		return s.rotateSecret(r, act, org, name)
	}

	return view{
			status: http.StatusNotFound,
		}, flex.Fail(
			flex.NotFound,
			"an endpoint can be sent a test and given a new secret; %q is neither",
			r.PathValue("act"),
		)
}

// rotateSecret gives an endpoint another secret, if the word was typed, and shows it once.
func (s *Server) rotateSecret(
	r *request,
	act access.Action,
	org flex.OrgID,
	name flex.EndpointName,
) (view, error) {
	if err := checkConfirmation(r, "new secret"); err != nil {
		return view{}, err
	}

	var changed flex.Endpoint
	err := s.act(r, act, func() error {
		var err error
		changed, err = s.Push.Rotate(r.Context(), org, name)
		return err
	})

	return view{
		page:   "secret",
		title:  "New secret",
		crumbs: []crumb{{"Deliveries", "/console/deliveries?org=" + org.String()}},
		data:   changed,
	}, err
}

// testWait is how long the page waits for the answer to a test message. It is longer than an
// attempt may take, so that the result is shown.
const testWait = 20 * time.Second
