package console

import (
	"slices"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// unreadyPage is the cars that were not ready on a day.
type unreadyPage struct {
	control.UnreadyView
	Cause  control.UnreadyCause // a filter
	Causes []unreadyChoice
	Shown  []control.Unready
	More   int    // that are in the files alone
	Before string // addresses of the days beside
	After  string // empty beyond today
	Export Export
}

// unreadyChoice is a cause that can be chosen.
type unreadyChoice struct {
	Cause control.UnreadyCause
	Label string
}

// unreadyCauses are the causes as people read them.
var unreadyCauses = []unreadyChoice{
	{control.UnreadyPlan, "The plan did not have all"},
	{control.UnreadyUnplugged, "Unplugged before its time"},
	{control.UnreadyDrew, "Took less than planned"},
}

// Because is a cause as people read it.
func (p *unreadyPage) Because(c control.UnreadyCause) string {
	for _, known := range unreadyCauses {
		if known.Cause == c {
			return known.Label
		}
	}

	return string(c)
}

// unready answers the cars that were not ready on a day.
func (s *Server) unready(r *request) (view, error) {
	if err := r.onlyFilters("org", "day", "cause"); err != nil {
		return view{}, err
	}

	query, err := readPast(r)
	if err != nil {
		return view{}, err
	}

	p := &unreadyPage{
		Cause:  control.UnreadyCause(r.URL.Query().Get("cause")),
		Causes: unreadyCauses,
		Export: r.exports(),
	}
	if p.Cause != "" && p.Because(p.Cause) == string(p.Cause) {
		return view{}, flex.Fail(flex.Invalid, "there is no cause %q", p.Cause)
	}

	p.UnreadyView, err = s.Control.ViewUnready(r.Context(), query.Org, query.Day)
	if err != nil {
		return view{}, err
	}

	p.choose(r)

	return view{
		page:  "unready",
		title: "Cars that were not ready",
		data:  p,
		table: p.table(),
	}, nil
}

// choose applies the filter and the length of a page.
func (p *unreadyPage) choose(r *request) {
	p.Cars = slices.DeleteFunc(p.Cars, func(u control.Unready) bool {
		return p.Cause != "" && u.Cause != p.Cause
	})

	p.Shown = p.Cars[:min(len(p.Cars), pageMax)]
	p.More = len(p.Cars) - len(p.Shown)

	p.Before = r.with("day", p.Day.Add(-1).String())
	if p.Day.Start().Before(p.Today.Start()) {
		p.After = r.with("day", p.Day.Add(1).String())
	}
}

func (p *unreadyPage) table() *table {
	t := &table{
		Name: "unready-" + p.Day.String(),
		Columns: []string{
			"asset_id", "external_id", "ready_by", "plugged_in_at", "plugged_out_at",
			"need_kwh", "planned_kwh", "had_kwh", "metered", "missing_kwh", "cause",
		},
	}

	for i := range p.Cars {
		u := &p.Cars[i]
		t.add(
			u.AssetID, u.ExternalID, u.ReadyBy, u.PluggedInAt, u.PluggedOutAt,
			u.Need.KWh(), u.Planned.KWh(), u.Had.KWh(), u.Metered, u.Missing().KWh(), string(u.Cause),
		)
	}

	return t
}
