package delivery

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Figures of an endpoint are of the pushes of a day, the newest of them.
const (
	figuresTime = 24 * time.Hour
	figuresMax  = 10_000
)

// ScheduleEndpoint is the name of the endpoint that schedules go to.
const ScheduleEndpoint = store.ScheduleEndpoint

// EndpointNamed is the name of an endpoint, of its text. One that there is not is found nowhere.
func EndpointNamed(text string) store.EndpointName { return store.EndpointName(text) }

// What became of a delivery.
const (
	Pending    = store.Pending
	Delivered  = store.Delivered
	Refused    = store.Refused
	Superseded = store.Superseded
	Lapsed     = store.Lapsed
	Retracted  = store.Retracted
)

// States are the states of a delivery, in the order of a list.
var States = []string{
	string(store.Pending), string(store.Delivered), string(store.Refused), string(store.Superseded), string(store.Lapsed), string(store.Retracted),
}

// Filter says which deliveries are looked for; what is empty takes all.
type Filter struct {
	Org             flex.OrgID
	State, Endpoint string
	Asset           flex.AssetID
	Before          flex.EventID // those older than this one
	Limit           int
	Figures         bool // whether the endpoints' figures are wanted, too
}

// Overview is what is sent to clients, the newest first, and how their endpoints do.
type Overview struct {
	Orgs       []flex.Org
	Endpoints  []EndpointFigures
	Deliveries []Line
}

// Line is a delivery with the names of its organisation and its asset.
type Line struct {
	store.Delivery
	OrgName   string
	AssetName string // "" for what concerns no single asset
}

// Overview lists the deliveries that the filter takes.
func (d *Service) Overview(ctx context.Context, f Filter) (v Overview, err error) {
	query := store.DeliveryQuery{
		State: store.DeliveryState(f.State), Endpoint: store.EndpointName(f.Endpoint), AssetID: f.Asset, Before: f.Before, Limit: f.Limit,
	}

	err = d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		v = Overview{}
		v.Orgs, err = all.VisitOrgs(ctx, f.Org, func(o flex.Org, tx *store.Tx) error {
			if f.Figures {
				if err := v.addEndpoints(ctx, tx, o, all.Now()); err != nil {
					return err
				}
			}

			found, err := tx.Deliveries(ctx, query)
			for _, x := range found {
				v.Deliveries = append(v.Deliveries, Line{Delivery: x, OrgName: o.Name})
			}

			return err
		})
		if err != nil {
			return err
		}

		v.sort(f.Limit)
		return v.name(ctx, all)
	})
	return v, err
}

// sort puts the newest first, and keeps so many.
func (v *Overview) sort(most int) {
	slices.SortFunc(v.Deliveries, func(a, b Line) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	v.Deliveries = v.Deliveries[:min(len(v.Deliveries), most)]
}

// name looks up the assets' names.
func (v *Overview) name(ctx context.Context, all *store.All) error {
	var ids []flex.AssetID
	for _, x := range v.Deliveries {
		if !x.AssetID.IsZero() {
			ids = append(ids, x.AssetID)
		}
	}

	names, err := all.AssetNames(ctx, ids)
	for i, x := range v.Deliveries {
		v.Deliveries[i].AssetName = names[x.AssetID]
	}

	return err
}

// addEndpoints adds an organisation's endpoints with their figures.
func (v *Overview) addEndpoints(ctx context.Context, tx *store.Tx, o flex.Org, now time.Time) error {
	endpoints, err := tx.Endpoints(ctx)
	if err != nil || len(endpoints) == 0 {
		return err
	}

	tried, err := tx.TriedSince(ctx, now.Add(-figuresTime), figuresMax)
	for _, e := range endpoints {
		v.Endpoints = append(v.Endpoints, figuresOf(e, o.Name, tried))
	}

	return err
}

// EndpointFigures is an endpoint with what became of the pushes of a day.
type EndpointFigures struct {
	store.Endpoint
	OrgName       string
	Tried, Taken  int
	Again, Dead   int // tried more than once; refused or expired
	P50, P95, P99 time.Duration
}

// figuresOf counts what became of an endpoint's pushes.
func figuresOf(e store.Endpoint, org string, tried []store.Tried) EndpointFigures {
	l := EndpointFigures{Endpoint: e, OrgName: org}
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

	slices.Sort(took)
	l.P50 = flex.Quantile(took, 50)
	l.P95 = flex.Quantile(took, 95)
	l.P99 = flex.Quantile(took, 99)
	return l
}

// Whole is one delivery of any organisation, with all that became of it.
type Whole struct {
	Detail
	Org       flex.Org
	AssetName string
	MayReplay bool
}

// Whole returns a delivery, whosever it is.
func (d *Service) Whole(ctx context.Context, id flex.EventID) (v Whole, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		org, err := all.DeliveryOrg(ctx, id)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		v.Org, err = tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		v.Detail, err = d.detail(ctx, tx, id)
		if err != nil {
			return err
		}

		names, err := all.AssetNames(ctx, []flex.AssetID{v.AssetID})
		v.AssetName = names[v.AssetID]
		return err
	})

	v.MayReplay = v.State == store.Pending || v.State == store.Delivered || v.State == store.Refused
	return v, err
}

// OrgOf returns whose a delivery is.
func (d *Service) OrgOf(ctx context.Context, id flex.EventID) (org flex.OrgID, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		org, err = all.DeliveryOrg(ctx, id)
		return err
	})
	return org, err
}

// Halted returns who halted all pushes, when and why; nil while they leave.
func (d *Service) Halted(ctx context.Context) (h *HaltView, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		found, err := all.Halted(ctx)
		h = (*HaltView)(found)
		return err
	})
	return h, err
}

// HaltView says who halted all pushes.
type HaltView struct {
	At     time.Time // by the true clock
	Who    string
	Reason string

	NeedsTwo bool      // whether two people end it
	AskedBy  string    // who asked for its end
	AskedAt  time.Time // zero if nobody has
}

// Asked reports whether somebody asked for the halt's end a short while before now.
func (h *HaltView) Asked(now time.Time) bool {
	return !h.AskedAt.IsZero() && now.Sub(h.AskedAt) < ResumeAskedFor
}

// Safety is whether pushes are halted, and what waits.
type Safety struct {
	Halted *HaltView // nil while pushes leave
	Held   int
	Lines  []SafetyLine
}

// SafetyLine is an organisation with how many of its pushes wait.
type SafetyLine struct {
	flex.Org
	Held int
}

// Safety counts what waits to be sent, by organisation.
func (d *Service) Safety(ctx context.Context) (s Safety, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		s = Safety{}
		halted, err := all.Halted(ctx)
		if err != nil {
			return err
		}

		s.Halted = (*HaltView)(halted)

		orgs, err := all.Orgs(ctx)
		if err != nil {
			return err
		}

		for _, o := range orgs {
			_, held, err := all.WaitingSince(ctx, o.ID, all.Now().Add(time.Second), 1)
			if err != nil {
				return err
			}

			s.Lines = append(s.Lines, SafetyLine{o, held})
			s.Held += held
		}

		return nil
	})
	return s, err
}
