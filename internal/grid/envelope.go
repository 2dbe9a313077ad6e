package grid

import (
	"context"
	"io"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// Service answers what a fleet can do. Set its fields before use.
type Service struct {
	DB *store.DB
	// what each home battery would move for an instruction, by its plan in force, and the cost of it; nil where offers are to have
	// cars' prices alone
	BatteryMoves func(context.Context, *store.Tx, *flex.Instruction) ([]forecast.Moved, error)

	pages pages
}

// Envelope is what the assets of a scope draw by plan, and the least and the most that they can.
type Envelope struct {
	At           time.Time // by the organisation's clock
	Scope        flex.Scope
	Controlled   int // assets in the numbers
	Uncontrolled int // plugged in without a schedule in force; in no number
	// of the controlled, those that cannot have what they need; they draw all that they can
	Short     int
	Batteries int // home batteries whose plan says what they can do; they are in no number of cars

	HalfHours []Window
	// every window of half-hours, by its beginning and then by its length
	Windows []Window
}

// Window is one or more half-hours on end. Energies are rounded to the nearest watt-hour.
type Window struct {
	flex.Span
	Planned flex.WattHours
	Least   flex.WattHours
	Most    flex.WattHours
	// of home batteries, beside the cars
	Batteries BatteryWindow
}

// BatteryWindow is what home batteries draw in a window by their plans, and the least and the most that they can. What is given
// is below zero.
type BatteryWindow struct {
	Planned flex.WattHours
	Least   flex.WattHours
	Most    flex.WattHours
}

// Envelope returns the envelope of a scope. A constraint group that there is not is NotFound.
func (s *Service) Envelope(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
) (*Envelope, error) {
	var g *gathering
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if err := tx.CheckScope(ctx, scope); err != nil {
			return err
		}

		g = gather(tx.Now())
		return g.read(ctx, tx, scope)
	})
	if err != nil {
		return nil, err
	}

	return g.envelope(scope), nil
}

// envelope works the gathered assets out.
func (g *gathering) envelope(scope flex.Scope) *Envelope {
	e := &Envelope{
		At:           g.now(),
		Scope:        scope,
		Controlled:   g.fleet.Len(),
		Uncontrolled: g.uncontrolled,
		Short:        len(g.short),
		Batteries:    len(g.batteries),
	}

	planned, fixed := ahead(g.planned), ahead(g.fixed)

	for _, b := range g.fleet.Envelope().Windows() {
		still := fixed[b.To] - fixed[b.From]
		w := Window{
			Span: flex.Span{
				From: time.Unix(g.edges[b.From], 0).UTC(),
				To:   time.Unix(g.edges[b.To], 0).UTC(),
			},
			Planned: nearest(planned[b.To] - planned[b.From]),
			Least:   nearest(b.Least + still),
			Most:    nearest(b.Most + still),

			Batteries: g.batteriesIn(b.From, b.To),
		}

		e.Windows = append(e.Windows, w)
		if b.To == b.From+1 {
			e.HalfHours = append(e.HalfHours, w)
		}
	}

	return e
}

// ahead returns the sums of the first half-hours: of none, of one, and so on.
func ahead(of [HalfHours]envelope.Joules) [HalfHours + 1]envelope.Joules {
	var sums [HalfHours + 1]envelope.Joules
	for i, e := range of {
		sums[i+1] = sums[i] + e
	}

	return sums
}

// nearest is an energy, which is not negative, in watt-hours.
func nearest(e envelope.Joules) flex.WattHours { return (e + 1800).WattHours() }

// WriteCSV writes the half-hours as CSV, or all windows if they are asked for.
func (e *Envelope) WriteCSV(out io.Writer, windows bool) error {
	w := csvfile.NewWriter(
		out,
		"start_timestamp",
		"end_timestamp",
		"planned_kwh",
		"least_kwh",
		"most_kwh",
		"batteries_planned_kwh",
		"batteries_least_kwh",
		"batteries_most_kwh",
	)

	rows := e.HalfHours
	if windows {
		rows = e.Windows
	}

	for _, r := range rows {
		b := &r.Batteries
		w.Write(
			r.From,
			r.To,
			r.Planned.KWh(),
			r.Least.KWh(),
			r.Most.KWh(),
			b.Planned.KWh(),
			b.Least.KWh(),
			b.Most.KWh(),
		)
	}

	return w.Flush()
}
