package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Figures of an endpoint are of the pushes of a day, the newest of them.
const (
	statsTime = 24 * time.Hour
	statsMax  = 10_000
)

// deliveriesPage is what is sent to clients, and what became of it.
type deliveriesPage struct {
	Orgs       []flex.Org
	Org        flex.OrgID // filters
	State      store.DeliveryState
	Endpoint   store.EndpointName
	Endpoints  []endpointLine
	States     []store.DeliveryState
	Deliveries []deliveryLine
	Next       string
	Export     Export
}

// endpointLine is an endpoint with its figures.
type endpointLine struct {
	store.Endpoint
	OrgName       string
	Tried, Taken  int
	Again, Dead   int // tried more than once; refused or expired
	P50, P95, P99 time.Duration
	Share         string // taken of those tried
}

type deliveryLine struct {
	store.Delivery
	OrgName   string
	AssetName string
}

func (s *Server) deliveries(r *request) (view, error) {
	q := r.URL.Query()
	p := &deliveriesPage{State: store.DeliveryState(q.Get("state")), Endpoint: store.EndpointName(q.Get("endpoint")), Export: r.exports(),
		States: []store.DeliveryState{store.Pending, store.Delivered, store.Refused, store.Superseded, store.Lapsed, store.Retracted}}

	ask := store.DeliveryQuery{State: p.State, Endpoint: p.Endpoint, Limit: r.limit() + 1}

	if err := r.knows("state", "endpoint", "org", "asset"); err != nil {
		return view{}, err
	}

	if err := readFilter(&p.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	if err := readFilter(&ask.Before, q.Get("before"), "push"); err != nil {
		return view{}, err
	}

	if err := readFilter(&ask.AssetID, q.Get("asset"), "asset"); err != nil {
		return view{}, err
	}

	if err := s.DB.ReadAll(r.Context(), func(all *store.All) error { return p.fill(r, all, ask) }); err != nil {
		return view{}, err
	}

	if err := r.whole(len(p.Deliveries)); err != nil {
		return view{}, err
	}

	if len(p.Deliveries) > r.limit() {
		p.Deliveries = p.Deliveries[:r.limit()]
		p.Next = r.with("before", p.Deliveries[len(p.Deliveries)-1].ID.String())
	}

	t := &table{Name: "deliveries", Columns: []string{"event_id", "organisation", "endpoint", "kind", "asset_id", "external_id", "generation", "state",
		"queued_at", "tries", "last_at", "last_took_ms", "last_status", "last_error", "callback"}}

	for _, d := range p.Deliveries {
		asset := ""
		if !d.AssetID.IsZero() {
			asset = d.AssetID.String()
		}

		t.add(d.ID.String(), d.OrgName, string(d.Endpoint), string(d.Kind), asset, d.AssetName, d.Generation, string(d.State),
			d.QueuedAt, d.Tries, d.Last.At, d.Last.Took.Milliseconds(), d.Last.Status, d.Last.Error, string(d.Callback))
	}

	return view{page: "deliveries", title: "Deliveries", data: p, table: t}, nil
}

// readFilter is readID of a filter, which may be empty.
func readFilter[Of any](to *flex.ID[Of], text, what string) error {
	if text == "" {
		return nil
	}
	return readID(to, text, what)
}

func (p *deliveriesPage) fill(r *request, all *store.All, ask store.DeliveryQuery) (err error) {
	p.Orgs, err = eachOrg(r.Context(), all, p.Org, func(o flex.Org, tx *store.Tx) error {
		if err := p.addEndpoints(r, tx, o, all.Now()); err != nil {
			return err
		}

		ds, err := tx.Deliveries(r.Context(), ask)
		for _, d := range ds {
			p.Deliveries = append(p.Deliveries, deliveryLine{Delivery: d, OrgName: o.Name})
		}

		return err
	})
	if err != nil {
		return err
	}

	slices.SortFunc(p.Deliveries, func(a, b deliveryLine) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	p.Deliveries = p.Deliveries[:min(len(p.Deliveries), ask.Limit)]
	var ids []flex.AssetID

	for _, d := range p.Deliveries {
		if !d.AssetID.IsZero() {
			ids = append(ids, d.AssetID)
		}
	}

	names, err := all.AssetNames(r.Context(), ids)
	for i, d := range p.Deliveries {
		p.Deliveries[i].AssetName = names[d.AssetID]
	}

	return err
}

func (p *deliveriesPage) addEndpoints(r *request, tx *store.Tx, o flex.Org, now time.Time) error {
	if r.exporting() {
		return nil
	}

	endpoints, err := tx.Endpoints(r.Context())
	if err != nil || len(endpoints) == 0 {
		return err
	}

	tried, err := tx.TriedSince(r.Context(), now.Add(-statsTime), statsMax)
	if err != nil {
		return err
	}

	for _, e := range endpoints {
		p.Endpoints = append(p.Endpoints, figuresOf(e, o.Name, tried))
	}

	return nil
}

// figuresOf counts what became of an endpoint's pushes.
func figuresOf(e store.Endpoint, org string, tried []store.Tried) endpointLine {
	l := endpointLine{Endpoint: e, OrgName: org, Share: "–"}
	var took []time.Duration

	for _, t := range tried {
		if t.Endpoint != e.Name {
			continue
		}

		l.Tried++
		took = append(took, t.Took)

		switch t.State {
		case store.Delivered:
			l.Taken++
		case store.Refused, store.Lapsed:
			l.Dead++
		}

		if t.Tries > 1 {
			l.Again++
		}
	}

	if l.Tried > 0 {
		slices.Sort(took)
		l.P50 = quantile(took, 50)
		l.P95 = quantile(took, 95)
		l.P99 = quantile(took, 99)
		l.Share = decimals(100*float64(l.Taken)/float64(l.Tried), 1) + " %"
	}

	return l
}

// quantile returns the value that so many of a hundred are not above, of sorted values.
func quantile[N cmp.Ordered](sorted []N, percent int) (v N) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// deliveryPage is one push with all that became of it.
type deliveryPage struct {
	delivery.Detail
	Org       flex.Org
	AssetName string
	Text      string // the body, laid out to be read
	MayReplay bool
}

func (s *Server) delivery(r *request) (view, error) {
	id, org, err := owned(s, r, "push", (*store.All).DeliveryOrg)
	if err != nil {
		return view{}, err
	}

	var p deliveryPage
	p.Org, err = s.orgRecord(r.Context(), org)
	if err != nil {
		return view{}, err
	}

	p.Detail, err = s.Push.Delivery(r.Context(), p.Org.ID, id)
	if err != nil {
		return view{}, err
	}

	err = s.DB.ReadAll(r.Context(), func(all *store.All) error {
		names, err := all.AssetNames(r.Context(), []flex.AssetID{p.AssetID})
		p.AssetName = names[p.AssetID]
		return err
	})

	var b bytes.Buffer
	if json.Indent(&b, p.Body, "", "  ") == nil {
		p.Text = b.String()
	}

	p.MayReplay = p.State == store.Pending || p.State == store.Delivered || p.State == store.Refused
	crumbs := []crumb{{"Deliveries", "/console/deliveries"}}

	if p.AssetName != "" {
		crumbs = append(crumbs, crumb{p.AssetName, "/console/assets/" + p.AssetID.String()})
	}

	return view{page: "delivery", title: "Push " + short(id), crumbs: crumbs, data: p}, err
}

// replay has a push sent once more.
func (s *Server) replay(r *request) (view, error) {
	id, org, err := owned(s, r, "push", (*store.All).DeliveryOrg)
	if err != nil {
		return view{}, err
	}

	err = s.act(r, store.Act{Act: "replay push", Org: org, Subject: id.String()}, func() error { return s.Push.Replay(r.Context(), org, id) })
	return view{to: "/console/deliveries/" + id.String() + "?done=replayed"}, err
}

// endpointAct is what the buttons of an endpoint do.
func (s *Server) endpointAct(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PathValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	name := store.EndpointName(r.PathValue("name"))
	act := store.Act{Org: org, Subject: fmt.Sprintf("%s endpoint", name)}

	switch r.PathValue("act") {
	case "test":
		var id flex.EventID
		act.Act = "send test push"
		err := s.act(r, act, func() (err error) {
			id, err = s.Push.Test(r.Context(), org, name)
			return err
		})
		if err == nil {
			_, err = s.Push.Await(r.Context(), org, id, testWait)
		}

		return view{to: "/console/deliveries/" + id.String()}, err
	case "rotate":
		act.Act = "rotate secret"
		var e store.Endpoint
		err := s.act(r, act, func() (err error) {
			e, err = s.Push.Rotate(r.Context(), org, name)
			return err
		})
		return view{page: "secret", title: "New secret", crumbs: []crumb{{"Deliveries", "/console/deliveries?org=" + org.String()}}, data: e}, err
	}

	return view{status: http.StatusNotFound}, flex.Fail(flex.NotFound, "an endpoint can be sent a test and given a new secret; %q is neither", r.PathValue("act"))
}

// testWait is how long the answer to a test message is waited for: longer than an attempt
// may take, so that the page says what became of it.
const testWait = 20 * time.Second
