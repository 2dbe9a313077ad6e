package console

import (
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Bounds of the map of gaps.
const (
	gapDaysMax   = 31
	gapDays      = 14
	gapExportMax = 500 // assets taken away at once
)

// readingsPage is what is missing of readings, by asset and day, and what was refused.
type readingsPage struct {
	ofOrg
	To      flex.Day
	Span    int // days
	Days    []flex.Day
	Rows    []gapRow
	Next    string
	Refused []refusedLine
	Missing int // half-hours, of those shown
	Wanted  int
	Export  Export
}

// gapRow is an asset's days.
type gapRow struct {
	store.AssetLine
	Cells []gapCell
}

// gapCell is a day of an asset: so many half-hours wanted, and missing.
type gapCell struct {
	Day             flex.Day
	Wanted, Missing int
}

// Level says how bad it is: none wanted, all there, some, half or all missing.
func (c gapCell) Level() string {
	switch {
	case c.Wanted == 0:
		return "none"
	case c.Missing == 0:
		return "full"
	case c.Missing == c.Wanted:
		return "gone"
	case 2*c.Missing >= c.Wanted:
		return "poor"
	}

	return "some"
}

type refusedLine struct {
	store.RefusedReading
	AssetName string
}

func (s *Server) readings(r *request) (view, error) {
	q := r.URL.Query()

	p := &readingsPage{Span: gapDays, Export: r.exports()}
	if err := readFilter(&p.Org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	f := store.Find{Limit: pageMax + 1}
	if r.exporting() {
		f.Limit = gapExportMax
	}

	if err := readFilter(&f.Before, q.Get("before"), "asset"); err != nil {
		return view{}, err
	}

	if text := q.Get("to"); text != "" {
		var err error
		p.To, err = flex.ParseDay(text)
		if err != nil {
			return view{}, flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
		}
	}

	if text := q.Get("days"); text != "" {
		if _, err := fmt.Sscan(text, &p.Span); err != nil || p.Span < 1 || p.Span > gapDaysMax {
			return view{}, flex.Fail(flex.Malformed, "days are a number from 1 to %d", gapDaysMax)
		}
	}

	if err := s.DB.ReadAll(r.Context(), func(all *store.All) error { return p.fill(r, all, f) }); err != nil {
		return view{}, err
	}

	t := &table{Name: "readings", Columns: []string{"asset_id", "external_id", "day", "wanted", "missing"}}
	for _, row := range p.Rows {
		for _, c := range row.Cells {
			if c.Missing > 0 {
				t.add(row.ID.String(), row.ExternalID, c.Day.String(), c.Wanted, c.Missing)
			}
		}
	}

	return view{page: "readings", title: "Readings", data: p, table: t}, nil
}

func (p *readingsPage) fill(r *request, all *store.All, f store.Find) (err error) {
	ctx := r.Context()
	tx, err := p.choose(ctx, all)
	if tx == nil || err != nil {
		return err
	}

	if p.To == (flex.Day{}) {
		p.To = flex.DayAt(tx.Now())
	}

	for i := p.Span - 1; i >= 0; i-- {
		p.Days = append(p.Days, p.To.Add(-i))
	}

	f.Org = p.Org
	assets, err := all.FindAssets(ctx, f)
	if err != nil {
		return err
	}

	if !r.exporting() && len(assets) > pageMax {
		assets = assets[:pageMax]
		p.Next = r.with("before", assets[pageMax-1].ID.String())
	}

	if err := p.addRows(r, tx, assets); err != nil {
		return err
	}

	refused, err := tx.RefusedSince(ctx, p.Days[0])
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(refused))
	for i, v := range refused {
		ids[i] = v.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	for _, v := range refused {
		p.Refused = append(p.Refused, refusedLine{v, names[v.AssetID]})
	}

	return err
}

// addRows counts what is missing of assets that charge: their own half-hours are what
// settlement needs.
func (p *readingsPage) addRows(r *request, tx *store.Tx, assets []store.AssetLine) error {
	var ids []flex.AssetID
	for _, a := range assets {
		if a.Type.Charges() {
			p.Rows = append(p.Rows, gapRow{AssetLine: a})
			ids = append(ids, a.ID)
		}
	}

	found, err := tx.Readings(r.Context(), store.ReadingQuery{Assets: ids, Labels: []flex.Label{flex.ChargerEnergy, flex.ChargerRegister}, Days: p.Days})
	if err != nil {
		return err
	}

	by := map[flex.AssetID][]flex.Reading{}
	for _, v := range found {
		by[v.AssetID] = append(by[v.AssetID], v)
	}

	for i := range p.Rows {
		row := &p.Rows[i]
		metered := map[flex.Day]*settle.MeteredDay{}

		days := settle.HalfHours(settle.Asset, by[row.ID])
		for j := range days {
			metered[days[j].Day] = &days[j]
		}

		for _, day := range p.Days {
			c := cellOf(day, metered[day], row.CreatedAt, tx.Now())
			p.Wanted, p.Missing = p.Wanted+c.Wanted, p.Missing+c.Missing
			row.Cells = append(row.Cells, c)
		}
	}

	return nil
}

// cellOf counts the half-hours of a day that are over, and after the asset was registered.
func cellOf(day flex.Day, m *settle.MeteredDay, created, now time.Time) gapCell {
	c := gapCell{Day: day}
	for n := 1; n <= day.Periods(); n++ {
		if q := day.Period(n); q.End().After(now) || q.Start().Before(created) {
			continue
		}

		c.Wanted++

		if m != nil {
			if _, known := m.At(n); known {
				continue
			}
		}

		c.Missing++
	}

	return c
}
