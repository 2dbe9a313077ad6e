package console

import (
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/reading"
)

// Bounds of the map of gaps.
const (
	gapDaysMax = 31
	gapDays    = 14
	gapPartMax = 500 // assets of a table to download that are read at once
)

// readingsPage shows missing readings by asset and day, and refused ones.
type readingsPage struct {
	reading.MissingView
	To     flex.Day
	Span   int    // days
	Next   string // address of the next page
	Export Export
}

func (s *Server) readings(r *request) (view, error) {
	query, err := readMissingQuery(r)
	if err != nil {
		return view{}, err
	}

	p := &readingsPage{Span: query.Days, Export: r.exports()}
	p.MissingView, err = s.Reading.MissingOf(r.Context(), query)
	if err != nil {
		return view{}, err
	}

	if len(p.Days) > 0 {
		p.To = p.Days[len(p.Days)-1]
	}

	if !p.MissingView.Next.IsZero() {
		p.Next = r.with("before", p.MissingView.Next.String())
		if r.URL.Query().Get("to") == "" {
			// the same days, though the next page is asked for after midnight
			p.Next += "&to=" + p.To.String()
		}
	}

	return view{
		page:  "readings",
		title: "Readings",
		data:  p,
		table: p.table(),
		next:  p.Next,
	}, nil
}

// readMissingQuery reads the assets and days of a request.
func readMissingQuery(r *request) (reading.MissingQuery, error) {
	var query reading.MissingQuery
	if err := r.onlyFilters("org", "to", "days"); err != nil {
		return query, err
	}

	q := r.URL.Query()
	if q.Has("limit") {
		return query, flex.Fail(
			flex.Invalid,
			"what is missing of readings is downloaded whole: it takes no limit=",
		)
	}

	query = reading.MissingQuery{Days: gapDays, Limit: pageMax}
	if err := readFilter(&query.Org, q.Get("org"), "organisation"); err != nil {
		return query, err
	}

	if r.exporting() {
		query.Limit = gapPartMax
	}

	if err := readFilter(&query.Before, q.Get("before"), "asset"); err != nil {
		return query, err
	}

	var err error
	if text := q.Get("to"); text != "" {
		query.To, err = flex.ParseDay(text)
		if err != nil {
			return query, flex.Fail(flex.Invalid, "a day is written YYYY-MM-DD")
		}
	}

	if text := q.Get("days"); text != "" {
		if _, err := fmt.Sscan(text, &query.Days); err != nil || query.Days < 1 ||
			query.Days > gapDaysMax {
			return query, flex.Fail(
				flex.Invalid,
				"days are a number from 1 to %d",
				gapDaysMax,
			)
		}
	}

	return query, nil
}

func (p *readingsPage) table() *table {
	t := &table{
		Name:    "readings",
		Columns: []string{"asset_id", "external_id", "day", "wanted", "missing", "label"},
	}

	for _, row := range p.Rows {
		for _, c := range row.Cells {
			if c.Missing > 0 {
				t.add(
					row.ID.String(),
					row.ExternalID,
					c.Day.String(),
					c.Expected,
					c.Missing,
					string(row.Label),
				)
			}
		}
	}

	return t
}

// measurand names the quantity of a label's readings, for a row of the map.
func measurand(label flex.Label) string {
	switch label {
	case flex.ChargerEnergy, flex.ChargerRegister:
		return "charger"
	case flex.BatteryInverterPower:
		return "battery's power"
	case flex.HeatPower:
		return "power of heating"

	case flex.SolarPower:
		return "solar power"

	case flex.BatteryStateOfCharge, flex.BatteryStoredEnergy:
		return "state of charge"
	case flex.TankTemperature:
		return "tank's temperature"

	case flex.RoomTemperature:
		return "rooms' temperature"
	}

	return "boundary"
}
