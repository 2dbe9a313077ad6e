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

// readingsPage is what is missing of readings, by asset and day, and what was refused.
type readingsPage struct {
	reading.MissingView
	To     flex.Day
	Span   int    // days
	Next   string // address of the next page
	Export Export
}

func (s *Server) readings(r *request) (view, error) {
	ask, err := missingAsked(r)
	if err != nil {
		return view{}, err
	}

	p := &readingsPage{Span: ask.Days, Export: r.exports()}
	p.MissingView, err = s.Reading.MissingOf(r.Context(), ask)
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

// missingAsked reads of which assets and days is asked.
func missingAsked(r *request) (reading.MissingQuery, error) {
	var ask reading.MissingQuery
	if err := r.onlyFilters("org", "to", "days"); err != nil {
		return ask, err
	}

	q := r.URL.Query()
	if q.Has("limit") {
		return ask, flex.Fail(
			flex.Invalid,
			"what is missing of readings is downloaded whole: it takes no limit=",
		)
	}

	ask = reading.MissingQuery{Days: gapDays, Limit: pageMax}
	if err := readFilter(&ask.Org, q.Get("org"), "organisation"); err != nil {
		return ask, err
	}

	if r.exporting() {
		ask.Limit = gapPartMax
	}

	if err := readFilter(&ask.Before, q.Get("before"), "asset"); err != nil {
		return ask, err
	}

	var err error
	if text := q.Get("to"); text != "" {
		ask.To, err = flex.ParseDay(text)
		if err != nil {
			return ask, flex.Fail(flex.Invalid, "a day is written YYYY-MM-DD")
		}
	}

	if text := q.Get("days"); text != "" {
		if _, err := fmt.Sscan(text, &ask.Days); err != nil || ask.Days < 1 ||
			ask.Days > gapDaysMax {
			return ask, flex.Fail(
				flex.Invalid,
				"days are a number from 1 to %d",
				gapDaysMax,
			)
		}
	}

	return ask, nil
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
					c.Wanted,
					c.Missing,
					string(row.Label),
				)
			}
		}
	}

	return t
}

// measured says what a label's readings are of, for a row of the map.
func measured(label flex.Label) string {
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
