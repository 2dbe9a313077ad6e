package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The figures of an endpoint count the newest pushes of a day.
const (
	figuresTime = 24 * time.Hour
	figuresMax  = 10_000
)

// States are the states of a delivery, in the order of a list.
var States = []string{
	string(flex.DeliveryPending),
	string(flex.DeliveryAccepted),
	string(flex.DeliveryRejected),
	string(flex.DeliverySuperseded),
	string(flex.DeliveryExpired),
	string(flex.DeliveryRetracted),
}

// Overview lists deliveries, the newest first, with their endpoints.
type Overview struct {
	Orgs       []flex.Org
	Endpoints  []EndpointView
	Deliveries []Line
	Failures   Failures
	Total      int // on all pages, if figures are wanted; up to one more than CountedMax
}

// CountedMax is how many deliveries of an organisation are counted at most.
const CountedMax = store.DeliveriesCounted

// Line is a delivery in a list, with the names of its organisation and its asset.
type Line struct {
	ID         flex.EventID
	OrgName    string
	Endpoint   string
	Kind       string
	AssetID    flex.AssetID // zero for what concerns no single asset
	AssetName  string
	Generation int64
	State      flex.DeliveryState
	QueuedAt   time.Time
	Tries      int
	Last       AttemptView         // zero before the first attempt
	NextAt     time.Time           // the earliest time of the next attempt, while it is pending
	Callback   flex.CallbackStatus // the furthest status reported, "" if none
	Key        int64               // in the chosen order
}

func lineOf(d *store.Delivery, org string) Line {
	return Line{
		ID:         d.ID,
		OrgName:    org,
		Endpoint:   string(d.Endpoint),
		Kind:       string(d.Kind),
		AssetID:    d.AssetID,
		Generation: d.Generation,
		State:      d.State,
		QueuedAt:   d.QueuedAt,
		Tries:      d.Tries,
		Last:       attemptView(&d.Last),
		NextAt:     d.NextAt,
		Callback:   d.Callback,
	}
}

// Overview lists the deliveries that the filter selects.
func (s *Service) Overview(
	ctx context.Context,
	f Filter,
) (Overview, error) {
	var v Overview
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		v = Overview{}
		f.since(all.Now())
		failed := map[string][]store.FailedPushes{}

		var err error
		v.Orgs, err = all.VisitOrgs(ctx, f.Org, func(o flex.Org, tx *store.Tx) error {
			if f.Figures {
				if err := v.addEndpoints(ctx, tx, o, all.Now()); err != nil {
					return err
				}

				failed[o.Name], err = failedSince(ctx, tx, all.Now())
				if err != nil {
					return err
				}

				if err := v.addCount(ctx, tx, f.all()); err != nil {
					return err
				}
			}

			found, err := tx.Deliveries(ctx, f.query())
			v.add(found, o.Name, f.Sort)

			return err
		})
		if err != nil {
			return err
		}

		v.Failures = failuresOf(failed)
		v.sort(store.DeliveryOrder(f.Sort), f.Limit)
		return v.name(ctx, all)
	})

	return v, err
}

// addCount adds how many deliveries an organisation has on all pages.
func (v *Overview) addCount(
	ctx context.Context,
	tx *store.Tx,
	q store.DeliveryQuery,
) error {
	n, err := tx.CountDeliveries(ctx, q)
	v.Total = min(v.Total+n, CountedMax+1)

	return err
}

// add adds an organisation's deliveries.
func (v *Overview) add(
	found []store.Delivery,
	org string,
	sort string,
) {
	order := store.DeliveryOrder(sort)
	for _, x := range found {
		l := lineOf(&x, org)
		l.Key = order.Key(&x)
		v.Deliveries = append(v.Deliveries, l)
	}
}

// sort sorts the deliveries of all organisations, and drops those beyond most.
func (v *Overview) sort(order store.DeliveryOrder, most int) {
	slices.SortFunc(v.Deliveries, func(a, b Line) int {
		return order.CompareDeliveries(a.Key, b.Key, a.ID, b.ID)
	})

	v.Deliveries = v.Deliveries[:min(len(v.Deliveries), most)]
}

// name sets the assets' names.
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
func (v *Overview) addEndpoints(
	ctx context.Context,
	tx *store.Tx,
	o flex.Org,
	now time.Time,
) error {
	endpoints, err := tx.Endpoints(ctx)
	if err != nil || len(endpoints) == 0 {
		return err
	}

	attempts, err := tx.TriedSince(ctx, now.Add(-figuresTime), figuresMax+1)
	newest := attempts[:min(len(attempts), figuresMax)]
	for _, e := range endpoints {
		figures := figuresOf(&e, o.Name, newest)
		figures.MoreTried = len(attempts) > len(newest)
		v.Endpoints = append(v.Endpoints, figures)
	}

	return err
}

// EndpointView is an endpoint with the results of a day's pushes. Its secrets and headers are
// not included.
type EndpointView struct {
	Org     flex.OrgID `json:"organisation_id"`
	OrgName string     `json:"organisation"`
	Name    string     `json:"name"`
	URL     string     `json:"url"`
	Enabled bool       `json:"enabled"`
	// why it is not enabled
	Reason string `json:"reason"`
	// until then the previous secret signs as well
	OldUntil time.Time `json:"old_secret_until,omitzero"`
	// 0 for flexd's own limit
	Rate int `json:"max_pushes_a_second"`
	// pushes under way at once
	Concurrency int `json:"max_concurrent"`
	// pushes of the last 24 hours, the newest 10,000 at most
	Tried int `json:"tried"`
	// whether there were more than were counted
	MoreTried bool `json:"more_tried"`
	// of these, accepted by the client
	Taken int `json:"taken"`
	// attempted more than once
	Again int `json:"tried_again"`
	// refused or expired
	Dead int `json:"dead"`
	// median time to the response
	P50 time.Duration `json:"-"`
	P95 time.Duration `json:"-"`
	P99 time.Duration `json:"-"`
	// the same, in milliseconds
	AnswerMS [3]int64 `json:"answer_ms_p50_p95_p99"`
}

// figuresOf counts the results of an endpoint's pushes.
func figuresOf(
	e *flex.Endpoint,
	org string,
	attempts []store.Tried,
) EndpointView {
	l := EndpointView{
		Org:         e.Org,
		OrgName:     org,
		Name:        string(e.Name),
		URL:         e.URL,
		Enabled:     e.Enabled,
		Reason:      e.Reason,
		OldUntil:    e.OldUntil,
		Rate:        e.Rate,
		Concurrency: e.Concurrency,
	}

	var took []time.Duration

	for _, t := range attempts {
		if t.Endpoint != e.Name {
			continue
		}

		l.Tried++
		took = append(took, t.Took)

		switch t.State {
		case flex.DeliveryAccepted:
			l.Taken++
		case flex.DeliveryRejected, flex.DeliveryExpired:
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
	l.AnswerMS = [3]int64{
		l.P50.Milliseconds(),
		l.P95.Milliseconds(),
		l.P99.Milliseconds(),
	}

	return l
}

// View is one delivery of any organisation, with its attempts and reports.
type View struct {
	ID       flex.EventID `json:"event_id"`
	OrgID    flex.OrgID   `json:"organisation_id"`
	OrgName  string       `json:"organisation"`
	Endpoint string       `json:"endpoint"`
	Kind     string       `json:"kind"`
	// zero for what concerns no single asset
	AssetID    flex.AssetID `json:"asset_id,omitzero"`
	AssetName  string       `json:"external_id,omitempty"`
	Generation int64        `json:"generation,omitempty"` // of a schedule
	State      string       `json:"state"`
	QueuedAt   time.Time    `json:"queued_at"`
	// the earliest time of the next attempt, while it is pending
	NextAt time.Time `json:"next_at,omitzero"`
	// the URL of the request, with the endpoint as it is now; "" without an endpoint
	URL       string `json:"url"`
	MayReplay bool   `json:"may_replay"`
	// the body of the request; null if its record was deleted
	Body      json.RawMessage `json:"body"`
	Attempts  []AttemptView   `json:"attempts"`
	Callbacks []CallbackView  `json:"callbacks"`
	// of a dispatch: since when a newer one replaces it, for any of its assets
	ReplacedFrom time.Time `json:"replaced_from,omitzero"`
	// whether the organisation's clock was changed. The body and ReplacedFrom are then in its
	// time, and all else in real time
	Turned bool `json:"-"`
}

// AttemptView is one attempt to send.
type AttemptView struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"-"`       // until the response was read
	TookMS int64         `json:"took_ms"` // the same, in milliseconds
	Status int           `json:"status"`  // of HTTP; 0: no response
	Error  string        `json:"error"`   // what went wrong, in words
	Answer string        `json:"answer"`  // the beginning of the response
}

func attemptView(a *store.Attempt) AttemptView {
	return AttemptView{
		At:     a.At,
		Took:   a.Took,
		TookMS: a.Took.Milliseconds(),
		Status: a.Status,
		Error:  a.Error,
		Answer: a.Answer,
	}
}

// CallbackView is a client's report about a delivery.
type CallbackView struct {
	Status     flex.CallbackStatus `json:"status"`
	ReceivedAt time.Time           `json:"received_at"`
	ReportedAt time.Time           `json:"reported_at"` // by the client's clock
}

// DeliveryView returns a delivery of any organisation.
func (s *Service) DeliveryView(
	ctx context.Context,
	id flex.EventID,
) (View, error) {
	var v View
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		org, err := all.DeliveryOrg(ctx, id)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		record, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		found, err := s.detail(ctx, tx, id)
		if err != nil {
			return err
		}

		v = found.view()
		v.OrgID, v.OrgName = record.ID, record.Name
		v.Turned = record.ClockOffset != 0
		names, err := all.AssetNames(ctx, []flex.AssetID{v.AssetID})
		v.AssetName = names[v.AssetID]
		return err
	})

	return v, err
}

// replacedFrom returns since when a newer dispatch replaces this one, for any of its assets;
// zero if none does.
func (d *Detail) replacedFrom() time.Time {
	if len(d.Replaced) == 0 {
		return time.Time{}
	}
	return d.Replaced[0].From
}

// view returns the delivery as it is shown, without names.
func (d *Detail) view() View {
	v := View{
		ReplacedFrom: d.replacedFrom(),
		ID:           d.ID,
		Endpoint:     d.Endpoint,
		Kind:         d.Kind,
		AssetID:      d.AssetID,
		Generation:   d.Generation,
		State:        string(d.State),
		QueuedAt:     d.QueuedAt,
		NextAt:       d.NextAt,
		URL:          d.URL,
		Attempts:     d.Attempts,
		Callbacks:    []CallbackView{},
	}

	v.MayReplay = slices.Contains(
		[]flex.DeliveryState{
			flex.DeliveryPending,
			flex.DeliveryAccepted,
			flex.DeliveryRejected,
		},
		d.State,
	) && v.ReplacedFrom.IsZero()

	if json.Valid(d.Body) {
		v.Body = d.Body
	}

	for _, c := range d.Callbacks {
		v.Callbacks = append(v.Callbacks, CallbackView{
			Status:     c.Status,
			ReceivedAt: c.ReceivedAt,
			ReportedAt: c.ReportedAt,
		})
	}

	return v
}

// OrgOf returns the organisation of a delivery.
func (s *Service) OrgOf(
	ctx context.Context,
	id flex.EventID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.DeliveryOrg(ctx, id)
		return err
	})

	return org, err
}

// Halted returns the halt of all pushes; nil if there is none.
func (s *Service) Halted(ctx context.Context) (*HaltView, error) {
	var h *HaltView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		found, err := all.Halted(ctx)
		if err == nil && found != nil {
			h = haltView(found)
		}
		return err
	})

	return h, err
}

// Halts returns the halts, the earliest first, without those of organisations that the reader
// may not see.
func (s *Service) Halts(ctx context.Context) ([]HaltView, error) {
	var list []HaltView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		list = nil
		halts, err := all.Halts(ctx)
		for i := range halts {
			ofAnother := !halts[i].Scope.Org.IsZero() &&
				!store.Reaches(ctx, halts[i].Scope.Org)
			if !ofAnother {
				list = append(list, *haltView(&halts[i]))
			}
		}
		return err
	})

	return list, err
}

// HaltView is a halt with its author and reason.
type HaltView struct {
	// as "all" or "gsp-group/_C": see store.ParseHaltScope
	Scope  string    `json:"scope"`
	At     time.Time `json:"at"` // by the true clock
	Who    string    `json:"who"`
	Reason string    `json:"reason"`

	NeedsTwo bool      `json:"needs_two"`         // whether two people end it
	AskedBy  string    `json:"asked_by"`          // who asked for its end
	AskedAt  time.Time `json:"asked_at,omitzero"` // zero if nobody has
}

// IsGlobal reports whether all pushes are halted.
func (h *HaltView) IsGlobal() bool { return h.Scope == HaltScope{}.String() }

func haltView(h *store.Halt) *HaltView {
	return &HaltView{
		h.Scope.String(),
		h.At,
		h.Who,
		h.Reason,
		h.NeedsTwo,
		h.AskedBy,
		h.AskedAt,
	}
}

// EndRequested reports whether somebody asked for the halt's end within ResumeAskedFor before now.
func (h *HaltView) EndRequested(now time.Time) bool {
	return !h.AskedAt.IsZero() && now.Sub(h.AskedAt) < ResumeAskedFor
}

// Safety shows the halts, and the pushes that wait.
type Safety struct {
	Halted *HaltView    `json:"halted"`       // null unless nothing leaves
	Parts  []PartHalted `json:"parts_halted"` // the others
	Held   int          `json:"waiting"`
	Lines  []SafetyLine `json:"organisations"`
}

// PartHalted is a halt of a part of the pushes, and how much it stops.
type PartHalted struct {
	HaltView
	HaltPreview
	Name string `json:"name"` // the name of what is halted
}

// SafetyLine is an organisation with the number of its pushes that wait.
type SafetyLine struct {
	ID   flex.OrgID `json:"organisation_id"`
	Name string     `json:"organisation"`
	Held int        `json:"waiting"`
}

// Safety counts the pushes that wait, by organisation.
func (s *Service) Safety(ctx context.Context) (Safety, error) {
	var view Safety
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		view = Safety{}
		orgs, err := all.Orgs(ctx)
		if err == nil {
			err = view.addHalts(ctx, all, orgs)
		}
		if err != nil {
			return err
		}

		for _, o := range orgs {
			_, waiting, err := all.WaitingSince(
				ctx,
				o.ID,
				all.Now().Add(time.Second),
				1,
			)
			if err != nil {
				return err
			}

			view.Lines = append(view.Lines, SafetyLine{o.ID, o.Name, waiting})
			view.Held += waiting
		}

		return nil
	})

	return view, err
}

// addHalts adds the halts, without those of an organisation that is not among those given,
// which the reader may not see.
func (s *Safety) addHalts(
	ctx context.Context,
	all *store.All,
	orgs []flex.Org,
) error {
	halts, err := all.Halts(ctx)
	if err != nil {
		return err
	}

	s.Parts = []PartHalted{}
	for i := range halts {
		h := &halts[i]
		if h.Scope.Kind == store.HaltAll {
			s.Halted = haltView(h)
			continue
		}

		name, isKnown := nameOfScope(h.Scope, orgs)
		if !isKnown {
			continue
		}

		reach, err := all.ReachOfHalt(ctx, h.Scope)
		if err != nil {
			return err
		}
		s.Parts = append(s.Parts, PartHalted{
			*haltView(h),
			HaltPreview(reach),
			name,
		})
	}

	return nil
}

// nameOfScope names what a halt stops; empty for another organisation than those given.
func nameOfScope(
	scope store.HaltScope,
	orgs []flex.Org,
) (string, bool) {
	if scope.Org.IsZero() {
		return scope.Words(""), true
	}

	i := slices.IndexFunc(orgs, func(o flex.Org) bool {
		return o.ID == scope.Org
	})
	if i < 0 {
		return "", false
	}

	return scope.Words(orgs[i].Name), true
}
