package console

import (
	"slices"
	"strings"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// aheadKinds are the kinds of forecast, in the page's order.
var aheadKinds = []string{"turn_down", "turn_up", "load"}

// aheadPage shows the forecast of what an organisation's fleet can do on a day, with the
// actual values.
type aheadPage struct {
	ofOrg
	Group    string
	GSPGroup string
	Kind     string
	Kinds    []string
	Day      flex.Day
	Before   string // the page of the day before
	After    string // and of the day after; empty beyond tomorrow
	Now      wire.EnvelopeResponse
	Ahead    wire.AheadResponse
	Lines    []aheadLine // of the kind
	Judged   wire.AheadJudged
	Export   Export
}

// aheadLine is a half-hour of one kind: average powers in kW.
type aheadLine struct {
	wire.AheadWindow
	Kind string
	KW   []float64 // by confidence, at least
	Came *float64  // nil while the day is not over
}

// aheadJSON is the page for programs.
type aheadJSON struct {
	OrgID    flex.OrgID            `json:"organisation_id"`
	Envelope wire.EnvelopeResponse `json:"envelope"`
	Ahead    wire.AheadResponse    `json:"ahead"`
}

// aheadLines are the half-hours of a forecast of one kind.
func aheadLines(a *wire.AheadResponse, kind string) []aheadLine {
	var lines []aheadLine
	for _, w := range a.Windows {
		l := aheadLine{AheadWindow: w, Kind: kind, KW: w.TurnDownKW, Came: w.TurnDownCameKW}
		switch kind {
		case "turn_up":
			l.KW, l.Came = w.TurnUpKW, w.TurnUpCameKW
		case "load":
			l.KW, l.Came = w.LoadKW, w.LoadCameKW
		}
		lines = append(lines, l)
	}

	return lines
}

// readAhead reads the request's parameters.
func readAhead(r *request) (*aheadPage, error) {
	if err := r.onlyFilters("org", "group", "gsp_group", "kind", "day"); err != nil {
		return nil, err
	}

	q := r.URL.Query()
	p := &aheadPage{
		Group:    strings.TrimSpace(q.Get("group")),
		GSPGroup: strings.TrimSpace(q.Get("gsp_group")),
		Kind:     q.Get("kind"),
		Kinds:    aheadKinds,
		Export:   r.exports(),
	}

	if p.Kind == "" {
		p.Kind = aheadKinds[0]
	}

	if !slices.Contains(aheadKinds, p.Kind) {
		return nil, flex.Fail(flex.Invalid, "kind is one of %v", aheadKinds)
	}

	var err error
	if text := q.Get("day"); text != "" {
		p.Day, err = flex.ParseDay(text)
		if err != nil {
			return nil, flex.Fail(flex.Invalid, "a day is written YYYY-MM-DD")
		}
	}

	err = readFilter(&p.Org, q.Get("org"), "organisation")

	return p, err
}

func (s *Server) ahead(r *request) (view, error) {
	p, err := readAhead(r)
	if err != nil {
		return view{}, err
	}

	if err := p.choose(s, r); err != nil {
		return view{}, err
	}

	if !p.Org.IsZero() {
		if err := s.readForecast(r, p); err != nil {
			return view{}, err
		}
	}

	return view{
		page:   "ahead",
		title:  "What the fleet can do",
		data:   p,
		table:  p.table(),
		record: aheadJSON{p.Org, p.Now, p.Ahead},
	}, nil
}

// readForecast reads the fleet's envelope and forecast.
func (s *Server) readForecast(r *request, p *aheadPage) error {
	scope := contract.ScopeOf(p.Group, p.GSPGroup)
	page, err := s.Grid.Page(r.Context(), p.Org, scope, p.Day)
	if err != nil {
		return err
	}

	ahead := page.Ahead
	p.Day = ahead.Day
	p.Now = contract.Envelope(page.Envelope, false)
	p.Ahead = contract.Ahead(ahead)
	p.Lines = aheadLines(&p.Ahead, p.Kind)
	p.Before = r.with("day", p.Day.Add(-1).String())
	if tomorrow := flex.DayAt(ahead.At).Add(1); p.Day.Start().Before(tomorrow.Start()) {
		p.After = r.with("day", p.Day.Add(1).String())
	}

	for _, j := range p.Ahead.Reliability {
		if j.Kind == p.Kind {
			p.Judged = j
		}
	}

	return nil
}

// table is the forecast of all kinds.
func (p *aheadPage) table() *table {
	t := &table{
		Name: "ahead-" + p.Day.String(),
		Columns: []string{
			"start", "end", "kind",
			"p50_kw", "p80_kw", "p90_kw", "p95_kw", "p99_kw",
			"came_kw",
		},
	}

	for _, kind := range aheadKinds {
		for _, l := range aheadLines(&p.Ahead, kind) {
			row := []any{l.StartTimestamp.Time, l.EndTimestamp.Time, kind}
			for _, kw := range l.KW {
				row = append(row, kw)
			}
			t.add(append(row, optional(l.Came))...)
		}
	}

	return t
}

// optional is a number of a table, nil where there is none.
func optional(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// offersPage lists an organisation's offers, with their acceptance and the actual power.
type offersPage struct {
	ofOrg
	wire.OfferPage
	Lines    []offerLine
	Services []offerSums
	Older    string // the page that follows, if there is one
	Export   Export
}

// offerLine is an offer of the page.
type offerLine struct{ wire.Offer }

// Tag says in words whether an offer was met; empty while its day is not over.
func (l offerLine) Tag() string {
	if l.Kept == nil {
		return ""
	}

	if *l.Kept {
		return "kept"
	}

	return "not kept"
}

// offerSums are the offers of a service on the page.
type offerSums struct {
	Service      string
	Offers       int
	OfferedKW    float64
	Accepted     int
	AcceptedKW   float64
	Judged, Kept int // whose day is over; in which at least what was offered came
}

func (s *Server) offers(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

	p := &offersPage{Export: r.exports()}
	q := r.URL.Query()
	if err := readFilter(&p.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	var before flex.OfferID
	if err := readFilter(&before, q.Get("before"), "offer"); err != nil {
		return view{}, err
	}

	if err := p.choose(s, r); err != nil {
		return view{}, err
	}

	if !p.Org.IsZero() {
		found, err := s.Grid.Offers(r.Context(), p.Org, before, r.limit())
		if err != nil {
			return view{}, err
		}
		p.OfferPage = contract.OfferPage(found)
	}

	if !p.Next.IsZero() {
		p.Older = r.with("before", p.Next.String())
	}
	p.Services = sumOffers(p.Offers)
	for _, o := range p.Offers {
		p.Lines = append(p.Lines, offerLine{o})
	}

	return view{
		page:  "offers",
		title: "Offers",
		data:  p,
		table: p.numbersOf(),
		next:  p.Older,
	}, nil
}

// sumOffers adds offers up by service, in order of their first offer.
func sumOffers(offers []wire.Offer) []offerSums {
	at := map[string]int{}
	var sums []offerSums
	for _, o := range offers {
		i, known := at[o.Service]
		if !known {
			i = len(sums)
			at[o.Service] = i
			sums = append(sums, offerSums{Service: o.Service})
		}

		sums[i].add(&o)
	}

	return sums
}

func (s *offerSums) add(o *wire.Offer) {
	s.Offers++
	s.OfferedKW += o.PowerKW
	if o.AcceptedKW != nil {
		s.Accepted++
		s.AcceptedKW += *o.AcceptedKW
	}

	if o.Kept == nil {
		return
	}

	s.Judged++
	if *o.Kept {
		s.Kept++
	}
}

func (p *offersPage) numbersOf() *table {
	t := &table{
		Name: "offers",
		Columns: []string{
			"id", "service", "direction", "start", "end", "group", "gsp_group",
			"confidence", "power_kw", "price_gbp_per_mwh", "made_at", "who",
			"accepted_at", "accepted_kw", "instruction_id", "came_kw", "kept", "delivered_kwh",
		},
	}

	for _, o := range p.Offers {
		var kept, instruction any
		if o.Kept != nil {
			kept = *o.Kept
		}
		if !o.InstructionID.IsZero() {
			instruction = o.InstructionID.String()
		}

		t.add(
			o.ID.String(), o.Service, o.Direction, o.StartTimestamp.Time, o.EndTimestamp.Time, o.Group, o.GSPGroup,
			o.Confidence, o.PowerKW, o.PriceGBPPerMWh, o.MadeAt.Time, o.Who,
			o.AcceptedAt.Time, optional(o.AcceptedKW), instruction, optional(o.CameKW), kept, optional(o.DeliveredKWh),
		)
	}

	return t
}
