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

// Service answers what a fleet can do. Its fields must be set before use.
type Service struct {
	DB *store.DB
	// what each device would move for an instruction against its plan in force, and the cost;
	// nil for offers priced by cars alone
	DeviceMoves func(context.Context, *store.Tx, *flex.Instruction) ([]forecast.Moved, error)
	// calls each with what each tank and heat pump of a scope does in a number of half-hours
	// from now on, and could do; those for which left is true only as planned. nil for not
	// counted
	HeatersAhead func(
		ctx context.Context,
		tx *store.Tx,
		scope flex.Scope,
		halfHours int,
		left func(flex.AssetID) bool,
		each func(*envelope.Heater),
	) error

	pages pages
}

// Envelope is what the assets of a scope draw by plan, and the least and the most that they
// can draw.
type Envelope struct {
	At           time.Time // by the organisation's clock
	Scope        flex.Scope
	Controlled   int // assets that are counted
	Uncontrolled int // assets that are plugged in without a schedule in force; not counted
	// the controlled assets whose need cannot be met; they draw all that they can
	Short     int
	Batteries int // home batteries with a plan; counted apart from cars
	Heaters   int // hot-water tanks and heat pumps with a plan; counted apart from cars

	HalfHours []Window
	// every window of half-hours, by its beginning and then by its length
	Windows []Window
}

// Window is one or more consecutive half-hours. Energies are rounded to the nearest watt-hour.
type Window struct {
	flex.Span
	Planned flex.WattHours
	Least   flex.WattHours
	Most    flex.WattHours
	// of home batteries, in addition to the cars
	Batteries DeviceWindow
	// of hot-water tanks and heat pumps
	Heaters DeviceWindow
}

// DeviceWindow is what devices of one kind draw in a window by their plans, and the least and
// the most that they can draw; negative if batteries give.
type DeviceWindow struct {
	Planned flex.WattHours
	Least   flex.WattHours
	Most    flex.WattHours
}

// Envelope returns the envelope of a scope, with its windows of at most longest half-hours;
// HalfHours gives all windows. For each heat pump all windows take some 30 ms, the half-hours
// alone 9 ms. An unknown constraint group is NotFound.
func (s *Service) Envelope(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	longest int,
) (*Envelope, error) {
	g, err := s.gathered(ctx, org, scope, func(g *gathering, tx *store.Tx) error {
		return g.readHeaters(
			ctx,
			tx,
			s,
			scope,
			longest,
		)
	})

	if err != nil {
		return nil, err
	}

	return g.windowsTo(scope, longest), nil
}

// gathered reads what an envelope is computed from, and calls more in the same snapshot.
func (s *Service) gathered(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	more func(*gathering, *store.Tx) error,
) (*gathering, error) {
	var g *gathering
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if err := tx.CheckScope(ctx, scope); err != nil {
			return err
		}

		g = gather(tx.Now())
		if err := g.read(ctx, tx, scope); err != nil {
			return err
		}

		return more(g, tx)
	})

	return g, err
}

// envelope returns the envelope of the gathered assets with all windows.
func (g *gathering) envelope(scope flex.Scope) *Envelope { return g.windowsTo(scope, HalfHours) }

// windowsTo is envelope with windows of at most longest half-hours.
func (g *gathering) windowsTo(
	scope flex.Scope,
	longest int,
) *Envelope {
	e := &Envelope{
		At:           g.now(),
		Scope:        scope,
		Controlled:   g.fleet.Len(),
		Uncontrolled: g.uncontrolled,
		Short:        len(g.short),
		Batteries:    len(g.batteries),
		Heaters:      g.heaters.number,
	}

	planned, fixed := ahead(g.planned), ahead(g.fixed)

	for _, b := range g.fleet.Envelope().Windows() {
		if b.To-b.From > longest {
			continue
		}

		still := fixed[b.To] - fixed[b.From]
		w := g.window(b.From, b.To)
		w.Planned = nearest(planned[b.To] - planned[b.From])
		w.Least = nearest(b.Least + still)
		w.Most = nearest(b.Most + still)

		e.Windows = append(e.Windows, w)
		if b.To == b.From+1 {
			e.HalfHours = append(e.HalfHours, w)
		}
	}

	return e
}

// window returns a window of the half-hours with what devices do in it, and without cars.
func (g *gathering) window(from, to int) Window {
	return Window{
		Span: flex.Span{
			From: time.Unix(g.edges[from], 0).UTC(),
			To:   time.Unix(g.edges[to], 0).UTC(),
		},
		Batteries: g.batteriesIn(from, to),
		Heaters:   g.heaters.in(from, to),
	}
}

// ahead returns the cumulative sums: of no half-hour, of the first, of the first two, and so
// on.
func ahead(of [HalfHours]envelope.Joules) [HalfHours + 1]envelope.Joules {
	var sums [HalfHours + 1]envelope.Joules
	for i, e := range of {
		sums[i+1] = sums[i] + e
	}

	return sums
}

// nearest returns an energy that is not negative in watt-hours, rounded to the nearest.
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
		"heaters_planned_kwh",
		"heaters_least_kwh",
		"heaters_most_kwh",
	)

	rows := e.HalfHours
	if windows {
		rows = e.Windows
	}

	for _, r := range rows {
		b, h := &r.Batteries, &r.Heaters
		w.Write(
			r.From,
			r.To,
			r.Planned.KWh(),
			r.Least.KWh(),
			r.Most.KWh(),
			b.Planned.KWh(),
			b.Least.KWh(),
			b.Most.KWh(),
			h.Planned.KWh(),
			h.Least.KWh(),
			h.Most.KWh(),
		)
	}

	return w.Flush()
}
