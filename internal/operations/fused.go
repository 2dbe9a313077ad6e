package operations

import (
	"context"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// fusedHours is what the cars of a site whose main fuse was set draw by plan, and could draw more, in watt-seconds, by the
// lines that they are on.
type fusedHours struct {
	fuse flex.Watts
	plan [outlookPeriods]envelope.PerLine
	more [outlookPeriods]envelope.PerLine
}

// fusedCar is a car of such a site.
type fusedCar struct {
	*fusedHours
	line envelope.Line
}

// readFuses notes which assets are plugged in behind a main fuse that was set.
func (f *Outlook) readFuses(ctx context.Context, tx *store.Tx) error {
	cars, err := tx.FusedCars(ctx)
	f.behind = make(map[flex.AssetID]store.FusedCar, len(cars))
	for _, c := range cars {
		f.behind[c.AssetID] = c
	}

	return err
}

// part is an outlook of some of the assets, to be joined to this one.
func (f *Outlook) part() *Outlook {
	part := newOutlook(f.now)
	part.behind = f.behind

	return part
}

// at is a car at what is counted of its site; at none where no main fuse was set.
func (f *Outlook) at(id flex.AssetID) fusedCar {
	c, found := f.behind[id]
	if !found {
		return fusedCar{}
	}

	return fusedCar{f.site(c.Site, c.Fuse), envelope.LineOf(c.Phases, c.Wired)}
}

// site is what is counted of a site, nothing at first.
func (f *Outlook) site(id flex.SiteID, fuse flex.Watts) *fusedHours {
	if f.fused[id] == nil {
		f.fused[id] = &fusedHours{fuse: fuse}
	}
	return f.fused[id]
}

// count adds what a car draws in half-hour i, and could draw more; at no site nothing.
func (c fusedCar) count(i int, plan, more int64) {
	if c.fusedHours == nil {
		return
	}

	c.plan[i][c.line] += envelope.Joules(plan)
	c.more[i][c.line] += envelope.Joules(more)
}

// joinFused adds what another part counted of the sites.
func (f *Outlook) joinFused(o *Outlook) {
	for id, theirs := range o.fused {
		own := f.site(id, theirs.fuse)
		for i := range own.plan {
			for line := range envelope.Lines {
				own.plan[i][line] += theirs.plan[i][line]
				own.more[i][line] += theirs.more[i][line]
			}
		}
	}
}

// keepFuses takes off what cars could draw beyond their site's main fuse, by phase as the envelope of a fleet has it, once
// all of them are counted, and forgets the sites.
func (f *Outlook) keepFuses() {
	for _, site := range f.fused {
		for i := range f.sums {
			through := envelope.Joules(site.fuse) * envelope.Joules(f.edges[i+1]-f.from(i))
			var left envelope.PerPhase
			for k := range left {
				left[k] = max(0, through-site.plan[i].On(k))
			}

			would := &site.more[i]
			f.sums[i].more -= int64(would.Sum() - left.Let(would))
		}
	}

	clear(f.fused)
}
