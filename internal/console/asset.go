package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// Limits of what an asset's page shows.
const (
	rangeMax  = 62 // days
	eventsMax = 2000
	pushMax   = 2000
	storyMax  = 200 // lines
)

// past is all that is known of an asset in a span.
type past struct {
	org       flex.Org
	now       time.Time
	asset     flex.Asset
	site      flex.Site
	charging  store.Charging
	accepted  int64
	span      flex.Span
	sessions  []store.Session
	schedules []store.Schedule
	events    []store.PastEvent
	pushes    map[flex.EventID]store.Delivery
	callbacks []store.Callback
	prices    []flex.PricedPeriod
	readings  []flex.Reading
}

// ask is what of an asset is asked for.
type ask struct {
	id       flex.AssetID
	show     string // session, day, week, month, or dates
	from, to flex.Day
	event    flex.EventID // the schedule to be explained; zero for the newest
}

// asked reads what a request asks of an asset.
func asked(r *request) (a ask, err error) {
	if err := readID(&a.id, r.PathValue("id"), "asset"); err != nil {
		return a, err
	}

	q := r.URL.Query()
	if err := readFilter(&a.event, q.Get("schedule"), "schedule"); err != nil {
		return a, err
	}

	a.show = q.Get("show")
	if q.Get("from") == "" && q.Get("to") == "" {
		return a, nil
	}

	a.show = "dates"
	var err1, err2 error
	a.from, err1 = flex.ParseDay(cmp.Or(q.Get("from"), q.Get("to")))
	a.to, err2 = flex.ParseDay(cmp.Or(q.Get("to"), q.Get("from")))
	length := a.to.Start().Sub(a.from.Start())

	switch {
	case err1 != nil || err2 != nil:
		return a, flex.Fail(flex.Malformed, "a date is written YYYY-MM-DD")
	case length < 0 || length > rangeMax*24*time.Hour:
		return a, flex.Fail(flex.Malformed, "the last day comes no earlier than the first, and at most %d days after it", rangeMax)
	}

	return a, nil
}

// spanOf is the time that is asked for. The last session's is wide enough to see what came
// before and after.
func (a ask) spanOf(now time.Time, c *store.Charging) flex.Span {
	today := flex.DayAt(now)
	switch a.show {
	case "dates":
		return flex.Span{From: a.from.Start(), To: a.to.Add(1).Start()}
	case "day":
		return flex.Span{From: today.Start(), To: today.Add(2).Start()}
	case "week":
		return flex.Span{From: today.Add(-6).Start(), To: today.Add(2).Start()}
	case "month":
		return flex.Span{From: today.Add(-30).Start(), To: today.Add(2).Start()}
	}

	s := c.Session
	if s.Number == 0 {
		return flex.Span{From: today.Start(), To: today.Add(2).Start()}
	}

	end := s.PluggedOutAt
	if end.IsZero() {
		end = slices.MaxFunc([]time.Time{now, s.ReadyBy, c.ChargeNow.To}, time.Time.Compare)
	}

	first, last := flex.PeriodAt(s.PluggedInAt.Add(-time.Hour)), flex.PeriodAt(end.Add(90*time.Minute))
	if last.Sub(first) > rangeMax*48 {
		first = last.Add(-rangeMax * 48)
	}

	return flex.Span{From: first.Start(), To: last.Start()}
}

// pastOf reads what is asked for in one transaction.
func (s *Server) pastOf(ctx context.Context, a ask) (p past, err error) {
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		org, err := all.AssetOrg(ctx, a.id)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		return p.read(ctx, tx, a)
	})
	return p, err
}

func (p *past) read(ctx context.Context, tx *store.Tx, a ask) (err error) {
	p.now = tx.Now()
	p.org, err = tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	p.asset, err = tx.Asset(ctx, a.id)
	if err != nil {
		return err
	}

	p.site, err = tx.Site(ctx, p.asset.SiteID)
	if err != nil {
		return err
	}

	p.charging, err = tx.Charging(ctx, a.id)
	if err != nil {
		return err
	}

	p.accepted, err = tx.Accepted(ctx, a.id)
	if err != nil {
		return err
	}

	p.span = a.spanOf(p.now, &p.charging)
	p.sessions, err = tx.SessionsWithin(ctx, a.id, p.span)
	if err != nil {
		return err
	}

	p.schedules, err = tx.SchedulesWithin(ctx, a.id, p.span)
	if err != nil {
		return err
	}

	p.events, err = tx.PastEvents(ctx, a.id, p.span, eventsMax)
	if err != nil {
		return err
	}

	ds, err := tx.Deliveries(ctx, store.DeliveryQuery{AssetID: a.id, Limit: pushMax})
	if err != nil {
		return err
	}

	p.pushes = make(map[flex.EventID]store.Delivery, len(ds))
	for _, d := range ds {
		p.pushes[d.ID] = d
	}

	var events []flex.EventID
	for _, s := range p.schedules {
		events = append(events, s.EventID)
	}

	p.callbacks, err = tx.CallbacksOf(ctx, events)
	if err != nil {
		return err
	}

	p.prices, err = tx.Prices(ctx, p.span)
	if err != nil {
		return err
	}

	return p.readReadings(ctx, tx)
}

// powerLabels are the readings of an asset that say what it drew.
var powerLabels = []flex.Label{flex.ChargerEnergy, flex.BatteryInverterPower}

func (p *past) readReadings(ctx context.Context, tx *store.Tx) (err error) {
	q := store.ReadingQuery{Assets: []flex.AssetID{p.asset.ID}, Labels: powerLabels}
	for d := flex.DayAt(p.span.From); d.Start().Before(p.span.To); d = d.Add(1) {
		q.Days = append(q.Days, d)
	}
	p.readings, err = tx.Readings(ctx, q)
	slices.SortFunc(p.readings, func(a, b flex.Reading) int { return a.From.Compare(b.From) })
	return err
}

// line is a constant quantity during a time.
type line struct {
	flex.Span
	value float64
}

// planned returns what the schedules allowed, each while it stood, in kilowatts.
func (p *past) planned() (lines []line) {
	ends := map[flex.SessionID]time.Time{}
	for _, s := range p.sessions {
		ends[s.ID] = s.PluggedOutAt
	}

	for i, s := range p.schedules {
		stood := flex.Span{From: s.Steps[0].From, To: s.End()}
		if i+1 < len(p.schedules) && p.schedules[i+1].SessionID == s.SessionID {
			stood.To = p.schedules[i+1].Steps[0].From
		}

		if end := ends[s.SessionID]; !end.IsZero() && end.Before(stood.To) {
			stood.To = end
		}

		lines = append(lines, limits(&s, stood.Meet(p.span))...)
	}

	return lines
}

// limits returns what a schedule allows within a span, in kilowatts.
func limits(s *store.Schedule, within flex.Span) (lines []line) {
	for _, step := range s.Steps {
		if part := step.Meet(within); !part.Empty() {
			lines = append(lines, line{part, min(step.Limit, s.From.Power).KW()})
		}
	}
	return lines
}

// actual returns what was metered, in kilowatts.
func (p *past) actual() (lines []line) {
	for _, r := range p.readings {
		hours := r.Len().Hours()
		if hours == 0 {
			continue
		}

		kilowatts := float64(r.Value) / 1e6
		if r.Label == flex.ChargerEnergy {
			kilowatts /= hours
		}

		lines = append(lines, line{r.Span, kilowatts})
	}

	return lines
}

// offPeak returns the off-peak time of the asset's tariff as it is now; nil if none is known.
func (p *past) offPeak() []flex.Span {
	t := p.charging.Standing.From.Tariff
	if p.charging.Tariff != nil {
		t = *p.charging.Tariff
	}

	w, err := tariff.Parse(t.OffPeak, t.Zone, t.Type)
	if err != nil {
		return nil
	}

	return w.Spans(p.span)
}

// series is what the plot of an asset shows, for programs: instants in seconds since 1970,
// power in kilowatts, prices in £/MWh.
type series struct {
	From        int64        `json:"from"`
	To          int64        `json:"to"`
	Now         int64        `json:"now"`
	Prices      [][2]any     `json:"prices"`   // start of the half-hour and price; null if none is known
	OffPeak     [][2]int64   `json:"off_peak"` // from, to
	Plan        [][3]float64 `json:"plan"`     // from, to, kW: what the schedules allowed while they stood
	Readings    [][3]float64 `json:"readings"` // from, to, average kW
	ReadyBy     []int64      `json:"ready_by"`
	Marks       []mark       `json:"marks"`
	Generations []generation `json:"generations"` // of the last session in the span
}

// mark is something that happened.
type mark struct {
	At   int64  `json:"at"`
	Kind string `json:"kind"` // event, schedule, push, callback
	Text string `json:"text"`
}

// generation is one schedule of a session.
type generation struct {
	Generation int64        `json:"generation"`
	EventID    flex.EventID `json:"event_id"`
	MadeAt     time.Time    `json:"made_at"`
	Cause      store.Cause  `json:"cause"`
	Plan       [][3]float64 `json:"plan"`
}

func triples(lines []line) [][3]float64 {
	out := make([][3]float64, 0, len(lines))
	for _, l := range lines {
		if n := len(out); n > 0 && out[n-1][1] == float64(l.From.Unix()) && out[n-1][2] == l.value {
			out[n-1][1] = float64(l.To.Unix())
			continue
		}
		out = append(out, [3]float64{float64(l.From.Unix()), float64(l.To.Unix()), l.value})
	}

	return out
}

// assetSeries answers the numbers of an asset's plot.
func (s *Server) assetSeries(r *request) (view, error) {
	a, err := asked(r)
	if err != nil {
		return view{}, err
	}

	p, err := s.pastOf(r.Context(), a)
	if err != nil {
		return view{}, err
	}

	out := series{From: p.span.From.Unix(), To: p.span.To.Unix(), Now: p.now.Unix(), Plan: triples(p.planned()), Readings: triples(p.actual()),
		Prices: [][2]any{}, OffPeak: [][2]int64{}, ReadyBy: []int64{}, Marks: []mark{}, Generations: []generation{}}

	for _, q := range p.prices {
		var price any
		if q.Known {
			price = q.Price.GBPPerMWh()
		}
		out.Prices = append(out.Prices, [2]any{q.Period.Start().Unix(), price})
	}

	for _, o := range p.offPeak() {
		out.OffPeak = append(out.OffPeak, [2]int64{o.From.Unix(), o.To.Unix()})
	}

	for _, q := range p.sessions {
		if !q.ReadyBy.IsZero() {
			out.ReadyBy = append(out.ReadyBy, q.ReadyBy.Unix())
		}
	}

	for _, l := range p.story() {
		out.Marks = append(out.Marks, mark{l.At.Unix(), l.Kind, l.Text})
	}

	if p.asset.Type == flex.Battery {
		b, _, err := s.whyBattery(r, &p)
		if err != nil {
			return view{}, err
		}

		if b != nil {
			out.Plan = triples(batteryLines(b.BatteryWhy))
		}
	}

	for _, g := range p.generations() {
		out.Generations = append(out.Generations, generation{g.Generation, g.EventID, g.MadeAt, g.Cause,
			triples(limits(&g, flex.Span{From: g.Steps[0].From, To: g.End()}))})
	}

	return view{json: out}, nil
}

// generations returns the schedules of the last session in the span.
func (p *past) generations() []store.Schedule {
	if len(p.schedules) == 0 {
		return nil
	}
	last := p.schedules[len(p.schedules)-1].SessionID
	first := slices.IndexFunc(p.schedules, func(s store.Schedule) bool { return s.SessionID == last })
	return p.schedules[first:]
}

// assetPage is an asset on one time axis, and why.
type assetPage struct {
	Org         flex.Org
	Asset       flex.Asset
	Site        flex.Site
	Now         time.Time
	Controlled  bool
	Open        bool
	Session     store.Session
	Sentences   []string
	Span        flex.Span
	LastDay     time.Time
	Show        string
	Ranges      []crumb
	Generations []store.Schedule
	Chosen      int // of the generations
	Why         *why
	Story       []storyLine
	StoryMore   bool
	WhatIf      *whatIf
	Rate        *control.AssetRate // of an asset that charges
	Battery     *batteryWhy
	BatteryNote string // why there is no plan of a battery
	Series      string // address of the plot's numbers
}

func (s *Server) assetNow(r *request) (view, error) {
	a, err := asked(r)
	if err != nil {
		return view{}, err
	}

	p, err := s.pastOf(r.Context(), a)
	if err != nil {
		return view{}, err
	}

	page := &assetPage{Org: p.org, Asset: p.asset, Site: p.site, Now: p.now, Controlled: p.charging.Controlled, Open: p.charging.Open(),
		Session: p.charging.Session, Sentences: p.sentences(), Span: p.span, LastDay: p.span.To.Add(-time.Second), Show: cmp.Or(a.show, "session"),
		Generations: p.generations(), Story: p.story(), Series: r.URL.Path + "/series.json"}

	if r.URL.RawQuery != "" {
		page.Series += "?" + r.URL.RawQuery
	}

	slices.Reverse(page.Story)

	page.StoryMore = len(page.Story) > storyMax
	if page.StoryMore {
		page.Story = page.Story[:storyMax]
	}

	for _, show := range []string{"session", "day", "week", "month"} {
		page.Ranges = append(page.Ranges, crumb{show, r.URL.Path + "?show=" + show})
	}

	if err := s.explain(r, page, a); err != nil {
		return view{}, err
	}

	if page.Asset.Type.Charges() {
		page.WhatIf, err = s.supposed(r, &p)
		if err != nil {
			return view{}, err
		}

		known, err := s.Control.Rate(r.Context(), p.org.ID, p.asset.ID)
		if err != nil {
			return view{}, err
		}
		page.Rate = &known
	} else if page.Asset.Type == flex.Battery {
		page.Battery, page.BatteryNote, err = s.whyBattery(r, &p)
	}

	name := cmp.Or(p.site.Postcode.Reveal(), short(p.site.ID))
	crumbs := []crumb{{p.org.Name, "/console/assets?org=" + p.org.ID.String()}, {name, "/console/sites/" + p.site.ID.String()}}
	return view{page: "asset", title: p.asset.ExternalID, crumbs: crumbs, data: page}, err
}

// explain fills in why the chosen schedule is as it is.
func (s *Server) explain(r *request, page *assetPage, a ask) error {
	if len(page.Generations) == 0 {
		return nil
	}

	page.Chosen = len(page.Generations) - 1
	for i, g := range page.Generations {
		if g.EventID == a.event {
			page.Chosen = i
		}
	}

	x, err := s.Control.ExplanationOf(r.Context(), page.Org.ID, page.Generations[page.Chosen].EventID)
	if err == nil {
		page.Why = whyOf(x)
	}

	return err
}

// assetWhy answers the why panel of one schedule alone, for the page's slider.
func (s *Server) assetWhy(r *request) (view, error) {
	a, err := asked(r)
	if err != nil {
		return view{}, err
	}

	var org flex.OrgID
	err = s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		org, err = all.AssetOrg(r.Context(), a.id)
		return err
	})
	if err != nil {
		return view{}, err
	}

	x, err := s.Control.ExplanationOf(r.Context(), org, a.event)
	return view{page: "asset", part: "why", data: whyOf(x)}, err
}

// assets answers the list of assets.
func (s *Server) assets(r *request) (view, error) {
	if err := r.knows("type", "plugged", "org"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	f := store.Find{Type: flex.AssetType(q.Get("type")), Plugged: q.Get("plugged") != "", Limit: r.limit() + 1}
	if err := readFilter(&f.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}
	if err := readFilter(&f.Before, q.Get("before"), "asset"); err != nil {
		return view{}, err
	}

	p := assetsPage{Find: f, Export: r.exports(), Types: []flex.AssetType{flex.Charger, flex.ElectricVehicle, flex.Battery, flex.HeatPump, flex.HotWaterTank}}
	err := s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		p.Orgs, err = all.Orgs(r.Context())
		if err != nil {
			return err
		}

		p.Assets, err = all.FindAssets(r.Context(), f)
		return err
	})

	if err == nil {
		err = r.whole(len(p.Assets))
	}

	if len(p.Assets) > r.limit() {
		p.Assets = p.Assets[:r.limit()]
		p.Next = r.with("before", p.Assets[len(p.Assets)-1].ID.String())
	}

	t := &table{Name: "assets", Columns: []string{"asset_id", "external_id", "type", "power_kw", "model", "site_id", "organisation", "plugged_in_at", "ready_by"}}
	for _, a := range p.Assets {
		var power any
		if a.Power != nil {
			power = a.Power.KW()
		}
		t.add(a.ID.String(), a.ExternalID, string(a.Type), power, a.Model, a.SiteID.String(), a.OrgName, a.PluggedIn, a.ReadyBy)
	}

	return view{page: "assets", title: "Assets", data: p, table: t}, err
}

// assetsPage is the list of assets.
type assetsPage struct {
	store.Find
	Orgs   []flex.Org
	Types  []flex.AssetType
	Assets []store.AssetLine
	Next   string
	Export Export
}

// hours writes times of charging as people say them: "from 02:30 to 05:00".
func hours(lines []line) string {
	var parts []string
	for i := 0; i < len(lines); i++ {
		if lines[i].value == 0 {
			continue
		}

		s := lines[i].Span
		for i+1 < len(lines) && lines[i+1].value > 0 && lines[i+1].From.Equal(s.To) {
			i++
			s.To = lines[i].To
		}

		parts = append(parts, "from "+clockText(s.From)+" to "+clockText(s.To))
	}

	switch n := len(parts); {
	case n == 0:
		return "not at all"
	case n == 1:
		return parts[0]
	case n > 4:
		return strings.Join(parts[:3], ", ") + " and " + count(n-3, "time") + " more"
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}
