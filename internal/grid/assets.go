package grid

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
)

// HalfHours is the number of half-hours of an envelope; the first is the rest of the running
// one.
const HalfHours = 48

// farthest is how far ahead off-peak hours are looked up: further than any ready-by.
const farthest = 72 * time.Hour

// secondSpan is a half-open time in whole seconds since 1970.
type secondSpan struct{ from, to int64 }

// gathering makes a fleet of the assets that are plugged in, with the devices of the scope.
type gathering struct {
	start int64                // now
	edges [HalfHours + 1]int64 // of the half-hours; the first is now
	fleet *envelope.Fleet

	planned [HalfHours]envelope.Joules // by the schedules, charge-now too
	// the part that cannot be moved: charge-now, and what assets draw on days on which they
	// may not be called
	fixed [HalfHours]envelope.Joules

	assets       []flex.AssetID // of the fleet's cars, in their order
	uncontrolled int
	short        map[int]bool // the fleet's cars whose need cannot be met, in their time or behind their fuse

	offPeak map[flex.Tariff][]secondSpan

	fused  []*fusedSite            // sites with cars behind a main fuse that was set
	behind map[flex.AssetID]behind // the site of each of these cars

	spent []spentDay

	batteries []batteryAhead
	heaters   heatersAhead
}

// gather returns an empty fleet at an instant.
func gather(now time.Time) *gathering {
	g := &gathering{
		start:   now.Unix(),
		fleet:   envelope.New(HalfHours),
		offPeak: map[flex.Tariff][]secondSpan{},
		behind:  map[flex.AssetID]behind{},
		short:   map[int]bool{},
	}

	first := flex.PeriodAt(now)
	for i := range g.edges {
		g.edges[i] = max(g.start, first.Add(i).Start().Unix())
	}

	return g
}

// read counts what is plugged in at the sites of a scope.
func (g *gathering) read(
	ctx context.Context,
	tx *store.Tx,
	scope flex.Scope,
) error {
	if err := g.readFuses(ctx, tx); err != nil {
		return err
	}
	if err := g.readSpent(ctx, tx); err != nil {
		return err
	}

	if err := g.readBatteries(ctx, tx, scope); err != nil {
		return err
	}

	err := tx.EachPlugged(
		ctx,
		scope,
		g.add,
	)

	g.share()

	return err
}

// now returns the beginning of the first half-hour.
func (g *gathering) now() time.Time { return time.Unix(g.start, 0).UTC() }

// halfHour returns a half-hour's span.
func (g *gathering) halfHour(i int) flex.Span {
	return flex.Span{
		From: time.Unix(g.edges[i], 0).UTC(),
		To:   time.Unix(g.edges[i+1], 0).UTC(),
	}
}

// end returns when the last half-hour ends.
func (g *gathering) end() int64 { return g.edges[HalfHours] }

// roundUp is the charging time in seconds by which a schedule may fall short and still count
// as meeting its need: schedules are cut to whole minutes.
const roundUp = 60

// add counts an asset that is plugged in.
func (g *gathering) add(p *store.Plugged) {
	if !p.Planned || p.Power <= 0 ||
		p.Steps[len(p.Steps)-1].To.Unix() <= g.start {
		g.uncontrolled++
		return
	}

	fixed := g.fixedTimes(p)
	d := g.draws(p, fixed)
	seconds, beyond := g.permitted(p, fixed)
	power := envelope.Joules(p.Power)
	need := envelope.Of(p.Need-p.Delivered) - d.before - d.now

	g.assets = append(g.assets, p.AssetID)
	car := envelope.Car{
		Hours: g.fleet.Hours(seconds), Power: p.Power,
		Least: need - power*envelope.Joules(beyond), Most: max(need, d.ahead),
	}

	n := g.fleet.Len()
	if at, fused := g.behind[p.AssetID]; fused {
		at.add(n)
	}

	short := g.fleet.Add(car)
	if short > power*roundUp {
		g.short[n] = true
	}
}

// drawn is what a schedule lets an asset draw.
type drawn struct {
	before envelope.Joules // up to now
	now    envelope.Joules // from now on until ready-by, in fixed times
	ahead  envelope.Joules // from now on, in other times
}

// draws adds up a schedule's steps by half-hour. In fixed times the asset draws as planned.
func (g *gathering) draws(
	p *store.Plugged,
	fixed []secondSpan,
) drawn {
	var d drawn
	for _, s := range p.Steps {
		power := int64(min(s.Limit, p.Power))
		step := secondSpan{s.From.Unix(), s.To.Unix()}
		if power == 0 {
			continue
		}

		d.before += envelope.Joules(power * step.meet(secondSpan{step.from, g.start}).length())
		ahead := step.meet(secondSpan{g.start, step.to})
		d.ahead += envelope.Joules(power * (ahead.length() - within(fixed, ahead)))
		g.spread(
			&g.planned,
			ahead,
			power,
		)

		at, fused := g.behind[p.AssetID]
		if fused {
			g.spread(
				&at.planned[at.line],
				ahead,
				power,
			)
		}

		for _, k := range fixed {
			now := ahead.meet(k)
			d.now += envelope.Joules(power * now.meet(secondSpan{now.from, p.ReadyBy.Unix()}).length())
			g.spread(
				&g.fixed,
				now,
				power,
			)

			if fused {
				g.spread(
					&at.fixed[at.line],
					now,
					power,
				)
			}
		}
	}

	return d
}

// spread adds the energy of a power to the half-hours that a stretch touches.
func (g *gathering) spread(
	sum *[HalfHours]envelope.Joules,
	s secondSpan,
	power int64,
) {
	for i := range sum {
		sum[i] += envelope.Joules(power * s.meet(secondSpan{g.edges[i], g.edges[i+1]}).length())
	}
}

// permitted returns the seconds of each half-hour in which an asset may charge, without times
// that are kept as planned, and how many there are after the last.
func (g *gathering) permitted(
	p *store.Plugged,
	fixed []secondSpan,
) ([]int64, int64) {
	open := g.open(p)
	seconds := make([]int64, HalfHours)
	in := func(w secondSpan) int64 {
		var sum int64
		for _, s := range open {
			s = s.meet(w)
			sum += s.length() - within(fixed, s)
		}

		return sum
	}

	for i := range seconds {
		seconds[i] = in(secondSpan{g.edges[i], g.edges[i+1]})
	}

	return seconds, in(secondSpan{
		g.end(),
		g.start + int64(farthest/time.Second),
	})
}

// open returns when an asset may charge: in off-peak hours before ready-by, and where its
// schedule draws. They are in order and apart.
func (g *gathering) open(p *store.Plugged) []secondSpan {
	var all []secondSpan
	ahead := secondSpan{g.start, p.ReadyBy.Unix()}
	for _, s := range g.offPeakHours(p.Tariff) {
		left := s.meet(ahead)
		if left.length() > 0 {
			all = append(all, left)
		}
	}

	for _, s := range p.Steps {
		draws := secondSpan{max(g.start, s.From.Unix()), s.To.Unix()}
		if s.Limit > 0 && draws.length() > 0 {
			all = append(all, draws)
		}
	}

	return inOrder(all)
}

// inOrder sorts stretches and makes one of those that overlap or touch, in place.
func inOrder(all []secondSpan) []secondSpan {
	slices.SortFunc(all, func(a, b secondSpan) int { return int(a.from - b.from) })
	return joined(all)
}

// joined makes one of stretches that overlap or touch, in place. They come by their beginning.
func joined(all []secondSpan) []secondSpan {
	n := 0
	for _, s := range all {
		if n > 0 && s.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, s.to)
			continue
		}

		all[n] = s
		n++
	}

	return all[:n]
}

// offPeakHours returns the hours that a tariff permits charging in from now on.
func (g *gathering) offPeakHours(t flex.Tariff) []secondSpan {
	known, ok := g.offPeak[t]
	if ok {
		return known
	}

	known = offPeakHours(t, secondSpan{
		g.start,
		g.start + int64(farthest/time.Second),
	})

	g.offPeak[t] = known

	return known
}

// offPeakHours returns the hours of a time that a tariff permits charging in, in order.
func offPeakHours(
	t flex.Tariff,
	of secondSpan,
) []secondSpan {
	spans, stated := tariff.OffPeak(t, of.span())
	if !stated { // no hour is dearer than another
		spans = []flex.Span{of.span()}
	}

	var hours []secondSpan
	for _, s := range spans {
		hours = append(hours, secondSpan{s.From.Unix(), s.To.Unix()})
	}

	return hours
}

// span returns the time as instants.
func (s secondSpan) span() flex.Span {
	return flex.Span{
		From: time.Unix(s.from, 0).UTC(),
		To:   time.Unix(s.to, 0).UTC(),
	}
}

// meet returns the time that two spans share; its length is 0 if there is none.
func (s secondSpan) meet(o secondSpan) secondSpan {
	return secondSpan{max(s.from, o.from), min(s.to, o.to)}
}

// length returns the length in seconds.
func (s secondSpan) length() int64 { return max(0, s.to-s.from) }
