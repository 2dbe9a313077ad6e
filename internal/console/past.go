package console

import (
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/operations"
)

// pastPage is a past day of a fleet.
type pastPage struct {
	operations.PastView
	Chosen  string // the group, as the form has it
	Choices []pastChoice
	Before  string // addresses of the days beside
	After   string // empty beyond today
	Export  Export
}

// pastChoice is a group that can be chosen.
type pastChoice struct{ Value, Label string }

// attributeLabels are the attributes that a fleet is counted by, as people read them.
var attributeLabels = map[string]string{
	"gsp_group": "GSP group",
	"model":     "Model",
	"firmware":  "Firmware",
}

func attributeLabel(attribute string) string { return attributeLabels[attribute] }

// groupName is the name of a group, or the words for assets without a known one.
func groupName(name string) string {
	if name == "" {
		return "none known"
	}

	return name
}

// readGroup reads a group as the form has it: "gsp_group:_A", or nothing for all.
func readGroup(text string) (operations.PastGroup, error) {
	var g operations.PastGroup
	if text == "" {
		return g, nil
	}

	attribute, name, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains(operations.HeatAttributes, attribute) {
		return g, flex.Fail(
			flex.Invalid,
			"group is one of %s, a colon and a name, such as gsp_group:_A",
			strings.Join(operations.HeatAttributes, ", "),
		)
	}

	return operations.PastGroup{Attribute: attribute, Name: name}, nil
}

// readPast reads the organisation and the day from the address.
func readPast(r *request) (operations.PastQuery, error) {
	q := r.URL.Query()
	var query operations.PastQuery
	var err error
	if text := q.Get("day"); text != "" {
		query.Day, err = flex.ParseDay(text)
		if err != nil {
			return query, flex.Fail(flex.Invalid, "a day is written YYYY-MM-DD")
		}
	}

	err = readFilter(&query.Org, q.Get("org"), "organisation")

	return query, err
}

// past answers a day of the fleet's past.
func (s *Server) past(r *request) (view, error) {
	if err := r.onlyFilters("org", "day", "group"); err != nil {
		return view{}, err
	}

	query, err := readPast(r)
	if err != nil {
		return view{}, err
	}

	p := &pastPage{
		Chosen: r.URL.Query().Get("group"),
		Export: r.exports(),
	}

	query.Group, err = readGroup(p.Chosen)
	if err != nil {
		return view{}, err
	}

	p.PastView, err = s.Operations.Past(r.Context(), query)
	if err != nil {
		return view{}, err
	}

	p.choices()
	p.Before = r.with("day", p.Day.Add(-1).String())
	if p.Day.Start().Before(p.Today.Start()) {
		p.After = r.with("day", p.Day.Add(1).String())
	}

	return view{
		page:  "past",
		title: "The fleet's past",
		data:  p,
		table: p.table(),
	}, nil
}

// choices returns the groups of the day, and the chosen one.
func (p *pastPage) choices() {
	groups := p.Groups
	if p.Group.Attribute != "" && !slices.Contains(groups, p.Group) {
		groups = append(groups, p.Group)
	}

	for _, g := range groups {
		p.Choices = append(p.Choices, pastChoice{
			Value: g.Attribute + ":" + g.Name,
			Label: attributeLabel(g.Attribute) + " " + groupName(g.Name),
		})
	}
}

// averageKW returns the average power of a half-hour's energy.
func averageKW(e flex.WattHours) float64 { return round(2*e.KWh(), 3) }

// averageOf is the average power of a half-hour, and nil where it was not counted.
func averageOf(counted bool, e flex.WattHours) any {
	if !counted {
		return nil
	}

	return averageKW(e)
}

// countedOf is a number of a half-hour, and nil where it was not counted.
func countedOf(counted bool, n int) any {
	if !counted {
		return nil
	}

	return n
}

func (p *pastPage) table() *table {
	t := &table{
		Name: "past-" + p.Day.String(),
		Columns: []string{
			"start", "planned_kw", "metered_kw", "without_flexd_kw", "cap_kw", "price_gbp_per_mwh",
			"battery_planned_kw", "battery_metered_kw",
			"plugged_in", "wanted", "metered",
			"day_before_planned_kw", "day_before_metered_kw", "week_before_planned_kw", "week_before_metered_kw",
			"heat_planned_kw", "heat_metered_kw",
		},
	}

	for i := range p.HalfHours {
		h := &p.HalfHours[i]
		var limit, price any
		if h.Cap != nil {
			limit = h.Cap.KW()
		}
		if h.Price != nil {
			price = h.Price.GBPPerMWh()
		}

		before, week := comparisonCells(h.Before), comparisonCells(h.Week)
		e := &h.Energy
		t.add(
			h.At, averageOf(h.Counted, e.Planned), averageOf(h.Counted, e.Metered), averageOf(h.Counted, e.Unmoved), limit, price,
			averageOf(h.Counted, e.BatteryPlanned), averageOf(h.Counted, e.BatteryMetered),
			countedOf(h.Counted, h.Plugged), countedOf(h.Counted, h.Wanted), countedOf(h.Counted, h.Known),
			before[0], before[1], week[0], week[1],
			averageOf(h.Counted, e.HeatPlanned), averageOf(h.Counted, e.HeatMetered),
		)
	}

	return t
}

// comparisonCells are the planned and metered values at the same time of another day.
func comparisonCells(e *operations.PastEnergy) [2]any {
	if e == nil {
		return [2]any{}
	}

	return [2]any{averageKW(e.Planned), averageKW(e.Metered)}
}

// heatPage shows which half-hours of a day were metered, by group.
type heatPage struct {
	operations.CoverageView
	Attributes []string
	Before     string
	After      string
	Past       string // the fleet's past of the day
	Export     Export
}

// readingsHeat answers the map of readings.
func (s *Server) readingsHeat(r *request) (view, error) {
	if err := r.onlyFilters("org", "day", "by"); err != nil {
		return view{}, err
	}

	query, err := readPast(r)
	if err != nil {
		return view{}, err
	}

	query.Group.Attribute = r.URL.Query().Get("by")
	if query.Group.Attribute == "" {
		query.Group.Attribute = operations.HeatAttributes[0]
	}

	if !slices.Contains(operations.HeatAttributes, query.Group.Attribute) {
		return view{}, flex.Fail(
			flex.Invalid,
			"by is one of %s",
			strings.Join(operations.HeatAttributes, ", "),
		)
	}

	p := &heatPage{
		Attributes: operations.HeatAttributes,
		Export:     r.exports(),
	}

	p.CoverageView, err = s.Operations.Heat(r.Context(), query)
	if err != nil {
		return view{}, err
	}

	p.Before = r.with("day", p.Day.Add(-1).String())
	p.After = r.with("day", p.Day.Add(1).String())

	return view{
		page:   "heat",
		title:  "Readings of the fleet",
		crumbs: []crumb{{"Readings", "/console/readings"}},
		data:   p,
		table:  p.table(),
	}, nil
}

func (p *heatPage) table() *table {
	t := &table{
		Name:    "readings-fleet-" + p.Day.String(),
		Columns: []string{p.Attribute, "start", "wanted", "missing"},
	}

	for _, row := range p.Rows {
		for i, c := range row.Cells {
			if c.Counted {
				t.add(row.Name, p.Times[i], c.Wanted, c.Missing)
			}
		}
	}

	return t
}
