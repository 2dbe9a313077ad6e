package operations

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// fusedHours is what the cars of a site whose main fuse was set draw by plan, and could draw more, in watt-seconds.
type fusedHours struct {
	fuse       flex.Watts
	plan, more perHalfHour
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

// at is what is counted of an asset's site; nil where no main fuse was set.
func (f *Outlook) at(id flex.AssetID) *fusedHours {
	c, found := f.behind[id]
	if !found {
		return nil
	}

	return f.site(c.Site, c.Fuse)
}

// site is what is counted of a site, nothing at first.
func (f *Outlook) site(id flex.SiteID, fuse flex.Watts) *fusedHours {
	if f.fused[id] == nil {
		f.fused[id] = &fusedHours{fuse: fuse}
	}
	return f.fused[id]
}

// count adds what a car draws in half-hour i, and could draw more; of no site nothing.
func (s *fusedHours) count(i int, plan, more int64) {
	if s == nil {
		return
	}

	s.plan[i] += plan
	s.more[i] += more
}

// joinFused adds what another part counted of the sites.
func (f *Outlook) joinFused(o *Outlook) {
	for id, theirs := range o.fused {
		own := f.site(id, theirs.fuse)
		for i := range own.plan {
			own.plan[i] += theirs.plan[i]
			own.more[i] += theirs.more[i]
		}
	}
}

// keepFuses takes off what cars could draw beyond their site's main fuse, once all of them are counted, and forgets
// the sites.
func (f *Outlook) keepFuses() {
	for _, site := range f.fused {
		for i := range f.sums {
			through := int64(site.fuse) * (f.edges[i+1] - f.from(i))
			room := max(0, through-site.plan[i])
			f.sums[i].more -= max(0, site.more[i]-room)
		}
	}

	clear(f.fused)
}
