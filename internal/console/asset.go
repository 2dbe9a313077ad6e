package console

import (
	"cmp"
	"strings"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// pastQuery reads the time and the schedule of an asset that the address asks for.
func pastQuery(r *request) (control.PastQuery, error) {
	var a control.PastQuery
	if err := readID(&a.Asset, r.PathValue("id"), "asset"); err != nil {
		return a, err
	}

	q := r.URL.Query()
	if err := readFilter(&a.Chosen, q.Get("schedule"), "schedule"); err != nil {
		return a, err
	}

	a.Show = q.Get("show")
	from, err := readDay(q.Get("from"))
	if err != nil {
		return a, err
	}

	to, err := readDay(q.Get("to"))
	if err != nil {
		return a, err
	}

	err = a.Between(from, to)

	return a, err
}

// readDay reads a day of a filter, nil if it is empty.
func readDay(text string) (*flex.Day, error) {
	if text == "" {
		return nil, nil
	}

	d, err := flex.ParseDay(text)
	if err != nil {
		return nil, flex.Fail(flex.Malformed, "a date is written YYYY-MM-DD")
	}

	return &d, nil
}

// pastWith reads the history of an asset, with the answer to the what-if question of the form.
// A form for another type of asset is ignored.
func (s *Server) pastWith(
	r *request,
	a control.PastQuery,
) (*control.Past, error) {
	q := r.URL.Query()
	var wrongCar, wrongBattery error
	a.Suppose, wrongCar = readCarQuestion(q)
	a.Battery, wrongBattery = readBatteryQuestion(q)

	p, err := s.Control.Past(r.Context(), a)
	if err != nil {
		return nil, err
	}

	if p.Asset.Type.Charges() && wrongCar != nil {
		return nil, wrongCar
	}

	if p.Asset.Type == flex.Battery && wrongBattery != nil {
		return nil, wrongBattery
	}

	return p, nil
}

// series is the data of an asset's plot: instants in seconds since 1970,
// power in kilowatts, prices in £/MWh.
type series struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Now  int64 `json:"now"`
	// start of the half-hour and price; null if none is known
	Prices  [][2]any   `json:"prices"`
	OffPeak [][2]int64 `json:"off_peak"` // from, to
	// from, to, kW: the power that the schedules allowed while they were in force; below zero,
	// the power that a car was to discharge
	Plan     [][3]float64 `json:"plan"`
	Readings [][3]float64 `json:"readings"` // from, to, average kW
	ReadyBy  []int64      `json:"ready_by"`
	Level    level        `json:"level"`
	Marks    []mark       `json:"marks"`
	// of the last session in the span
	Generations []generation `json:"generations"`

	// Curves has the prices that each schedule was planned with, by the curve of the schedule.
	// Their form is that of Prices.
	Curves map[string][][2]any `json:"curves"`
}

// level is the asset's state of charge or temperature.
type level struct {
	Unit     string   `json:"unit"`     // % or °C
	Read     [][2]any `json:"read"`     // instant, value
	Expected [][2]any `json:"expected"` // by the plan in force
}

// levelPairs are instants with the level at each.
func levelPairs(levels []control.LevelAt) [][2]any {
	pairs := make([][2]any, 0, len(levels))
	for _, l := range levels {
		pairs = append(pairs, [2]any{l.At.Unix(), round(l.Value, 1)})
	}

	return pairs
}

// mark is an event in the plot.
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
	Cause      string       `json:"cause"`
	Plan       [][3]float64 `json:"plan"`
	// of Curves, which lacks those past their retention
	Curve string `json:"curve"`
}

func triples(lines []control.Draw) [][3]float64 {
	out := make([][3]float64, 0, len(lines))
	for _, l := range lines {
		n := len(out)
		if n > 0 && out[n-1][1] == float64(l.From.Unix()) &&
			out[n-1][2] == l.KW {
			out[n-1][1] = float64(l.To.Unix())
			continue
		}

		out = append(out, [3]float64{
			float64(l.From.Unix()),
			float64(l.To.Unix()),
			l.KW,
		})
	}

	return out
}

// assetSeries answers the data of an asset's plot.
func (s *Server) assetSeries(r *request) (view, error) {
	a, err := pastQuery(r)
	if err != nil {
		return view{}, err
	}

	a.Curves = true
	p, err := s.Control.Past(r.Context(), a)
	if err != nil {
		return view{}, err
	}

	out := series{
		From:        p.Span.From.Unix(),
		To:          p.Span.To.Unix(),
		Now:         p.Now.Unix(),
		Plan:        triples(p.Moves()),
		Readings:    triples(p.Actual()),
		Prices:      pricePairs(p.Prices),
		Curves:      map[string][][2]any{},
		OffPeak:     [][2]int64{},
		ReadyBy:     []int64{},
		Marks:       []mark{},
		Generations: []generation{},
	}

	out.addLevel(p)
	out.addBackground(p)

	for _, l := range storyOf(p) {
		out.Marks = append(out.Marks, mark{l.At.Unix(), l.Kind, l.Text})
	}

	out.addGenerations(p)

	return view{json: out}, nil
}

// addLevel adds the asset's level (state of charge or temperature). For a battery or a tank,
// which have no sessions, it also adds the plan.
func (out *series) addLevel(p *control.Past) {
	switch {
	case p.Asset.Type == flex.Battery:
		out.Plan = triples(batteryPlan(p))
	case p.Asset.Type.Heats():
		out.Plan = triples(p.Heat)
	}

	out.Level = level{
		Unit:     p.Level.Unit,
		Read:     levelPairs(p.Level.Read),
		Expected: levelPairs(p.Level.Expected),
	}
}

// addGenerations adds the schedules of the last session, and the prices with which they were
// made.
func (out *series) addGenerations(p *control.Past) {
	for _, g := range p.Generations() {
		out.Generations = append(out.Generations, generation{
			g.Generation,
			g.EventID,
			g.MadeAt,
			string(g.Cause),
			triples(g.Moves(g.Whole())),
			g.Curve.String(),
		})
	}

	for name, prices := range p.Curves {
		out.Curves[name] = pricePairs(prices)
	}
}

// pricePairs are half-hours with their prices, null where none is known.
func pricePairs(prices []flex.PricedPeriod) [][2]any {
	pairs := make([][2]any, 0, len(prices))
	for _, q := range prices {
		var price any
		if q.Known {
			price = q.Price.GBPPerMWh()
		}
		pairs = append(pairs, [2]any{q.Period.Start().Unix(), price})
	}

	return pairs
}

// addBackground adds the off-peak time and the deadlines.
func (out *series) addBackground(p *control.Past) {
	for _, o := range p.OffPeak {
		out.OffPeak = append(out.OffPeak, [2]int64{o.From.Unix(), o.To.Unix()})
	}

	for _, q := range p.Sessions {
		if !q.ReadyBy.IsZero() {
			out.ReadyBy = append(out.ReadyBy, q.ReadyBy.Unix())
		}
	}
}

// assetPage is the data of an asset's page.
type assetPage struct {
	control.AssetView
	history
	reasons
	past     *control.Past
	LastDay  time.Time
	Show     string
	Ranges   []crumb
	Chosen   int // of the schedules, the one that Why explains
	Rate     *control.AssetRate
	Known    *control.AssetHeat // of a heat pump or a hot-water tank
	Series   string             // address of the plot's numbers
	AtBridge bool               // whether a bridge may know its charger
	Freed    bool               // control ended, and as far as is known a car is still plugged in
}

// asset answers the page of an asset.
func (s *Server) asset(r *request) (view, error) {
	a, err := pastQuery(r)
	if err != nil {
		return view{}, err
	}

	a.Explain = true
	p, err := s.pastWith(r, a)
	if err != nil {
		return view{}, err
	}

	page := &assetPage{
		AssetView: p.View(),
		history:   historyOf(p),
		reasons:   reasonsOf(p, r.URL.Query()),
		past:      p,
		LastDay:   p.Span.To.Add(-time.Second),
		Chosen:    p.Chosen,
		Rate:      p.Rate,
		Known:     p.Known,
		Series:    r.URL.Path + "/series.json",
		AtBridge:  s.Bridge != nil && p.Asset.Type == flex.Charger,
		Freed:     p.Freed,
	}

	if r.URL.RawQuery != "" {
		page.Series += "?" + r.URL.RawQuery
	}

	page.addRanges(a.Show, r.URL.Path)

	return view{
		page:   "asset",
		title:  page.ExternalID,
		crumbs: page.crumbs(),
		data:   page,
		record: page.json(),
	}, nil
}

// Discharges reports whether the schedule in force has the car discharge.
func (p *assetPage) Discharges() bool {
	c := &p.past.Charging
	return c.Open() && len(c.Current.Discharges) > 0
}

// addRanges adds the time ranges that can be chosen. An asset without sessions has no range of
// a session.
func (p *assetPage) addRanges(current, path string) {
	ranges := []string{"session", "day", "week", "month"}
	if !p.Type.Charges() {
		ranges = ranges[1:]
	}

	p.Show = cmp.Or(current, ranges[0])
	for _, name := range ranges {
		p.Ranges = append(p.Ranges, crumb{name, path + "?show=" + name})
	}
}

// assetJSON is the page as JSON.
type assetJSON struct {
	wire.AssetView
	Sentences []string `json:"sentences"` // how it is now, in words
	// how full a car is expected to be at its ready-by, in %; absent where that is not known
	ReadyLevel *float64 `json:"ready_level_pct,omitempty"`
	// of the time that is shown, the newest first
	Story     []storyLine `json:"story"`
	StoryMore bool        `json:"story_more"`
	Series    string      `json:"series"` // address of the numbers of its plot
}

func (p *assetPage) json() assetJSON {
	answer := assetJSON{
		AssetView: contract.AssetView(p.past),
		Sentences: p.Sentences,
		Story:     p.Story,
		StoryMore: p.StoryMore,
		Series:    p.Series,
	}

	level, known := p.past.Level.AtLast()
	if known && p.Type.Charges() {
		level = round(level, 1)
		answer.ReadyLevel = &level
	}

	return answer
}

// crumbs are the asset's organisation and site.
func (p *assetPage) crumbs() []crumb {
	name := cmp.Or(p.Postcode, short(p.SiteID))
	return []crumb{
		{p.OrgName, "/console/assets?org=" + p.OrgID.String()},
		{name, "/console/sites/" + p.SiteID.String()},
	}
}

// SaysShort reports whether the page's first sentences state the shortfall of the chosen
// schedule. They do if the schedule is of the session that they describe, and that session has
// no readings.
func (p *assetPage) SaysShort() bool {
	why := p.past.Why
	if why == nil || why.Plan.Shortfall <= 0 {
		return false
	}

	_, known := p.past.Outcome()

	return !known && why.SessionID == p.past.Charging.Session.ID
}

// explainSchedule answers the reasons for one schedule, for the page's slider.
func (s *Server) explainSchedule(r *request) (view, error) {
	a, err := pastQuery(r)
	if err != nil {
		return view{}, err
	}

	x, err := s.Control.AssetWhy(r.Context(), a.Asset, a.Chosen)
	if err != nil {
		return view{}, err
	}

	return view{
		page: "asset",
		part: "why",
		data: whyOf(x),
	}, nil
}

// hours writes charging times in words: "from 02:30 to 05:00".
func hours(lines []control.Draw) string {
	var parts []string
	for i := 0; i < len(lines); i++ {
		if lines[i].KW == 0 {
			continue
		}

		s := lines[i].Span
		for i+1 < len(lines) && lines[i+1].KW > 0 && lines[i+1].From.Equal(s.To) {
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
