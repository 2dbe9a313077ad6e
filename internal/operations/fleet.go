package operations

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How old the snapshot of the fleet may be that is shown. That of a large fleet takes time to
// make: it is kept longer, so that watching takes a small part of the machine, and the
// last one is shown while the next is made.
const (
	fleetAge     = 2 * time.Second
	fleetAgeCost = 10 // times the time that it took to make
	fleetOld     = 30 * time.Second
	// what takes less is made while the page waits
	fleetCheap = 100 * time.Millisecond
)

// Fleet is a snapshot of the whole fleet.
type Fleet struct {
	At     time.Time // by the true clock
	Orgs   []flex.Org
	ByOrg  map[flex.OrgID]*Outlook
	Counts map[flex.OrgID]store.FleetCount

	took  time.Duration
	parts []store.PluggedPart // in which it was read
	// whether they were of one size, so that the next snapshot is read in the same parts
	even bool
}

// fleetCache keeps the latest snapshot. One request at a time makes a new one.
type fleetCache struct {
	making sync.Mutex
	last   atomic.Pointer[Fleet]
}

// Look returns the snapshot of the fleet, a new one if the last is too old: of the organisations that the
// context is for.
func (s *Service) Look(ctx context.Context) (*Fleet, error) {
	whole, err := s.wholeFleet(store.Everywhere(ctx))
	if err != nil {
		return nil, err
	}

	return whole.within(ctx), nil
}

// within returns the part of the snapshot that the context is for.
func (v *Fleet) within(ctx context.Context) *Fleet {
	orgs, bounded := store.WithinOf(ctx)
	if !bounded {
		return v
	}

	part := &Fleet{
		At:     v.At,
		ByOrg:  map[flex.OrgID]*Outlook{},
		Counts: map[flex.OrgID]store.FleetCount{},
	}

	for _, o := range v.Orgs {
		if slices.Contains(orgs, o.ID) {
			part.Orgs = append(part.Orgs, o)
			part.ByOrg[o.ID] = v.ByOrg[o.ID]
			part.Counts[o.ID] = v.Counts[o.ID]
		}
	}

	return part
}

// wholeFleet is Look of the whole fleet.
func (s *Service) wholeFleet(ctx context.Context) (*Fleet, error) {
	v, now := s.fleet.last.Load(), s.DB.Now()
	if v != nil && !now.Before(v.At) {
		switch age := now.Sub(v.At); {
		case age < max(fleetAge, fleetAgeCost*v.took):
			return v, nil

		case age < fleetOld && v.took > fleetCheap:
			if s.fleet.making.TryLock() {
				go func() {
					defer s.fleet.making.Unlock()
					late, end := context.WithTimeout(
						context.WithoutCancel(ctx),
						fleetOld,
					)

					defer end()

					if _, err := s.readFleet(late); err != nil {
						s.log().ErrorContext(
							late,
							"look at the fleet",
							"err",
							err,
						)
					}
				}()
			}

			return v, nil
		}
	}

	s.fleet.making.Lock()
	defer s.fleet.making.Unlock()

	w := s.fleet.last.Load()
	if w != v && w != nil && now.Sub(w.At) < fleetAge {
		return w, nil // made while this one waited
	}

	return s.readFleet(ctx)
}

// fleetReaders is how many read the fleet side by side, where there are as many processors.
const fleetReaders = 4

// readFleet makes a snapshot of the fleet. Each asset is read once, at some moment
// meanwhile.
func (s *Service) readFleet(ctx context.Context) (v *Fleet, err error) {
	defer flex.Recover(&err)

	start := time.Now()
	v = &Fleet{
		At:     s.DB.Now(),
		ByOrg:  map[flex.OrgID]*Outlook{},
		Counts: map[flex.OrgID]store.FleetCount{},
	}

	if last := s.fleet.last.Load(); last != nil && last.even {
		v.parts = last.parts
	}

	if err := s.readOrgs(ctx, v); err != nil {
		return nil, err
	}
	if err := s.readPlugged(ctx, v); err != nil {
		return nil, err
	}

	for _, f := range v.ByOrg {
		f.keepFuses()
	}

	v.took = time.Since(start)
	s.fleet.last.Store(v)

	return v, nil
}

// readOrgs reads the organisations, their clocks, sizes and assets that are not plugged in, and divides the fleet into
// parts.
func (s *Service) readOrgs(ctx context.Context, v *Fleet) error {
	return s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		v.Orgs, err = all.Orgs(ctx)
		if err != nil {
			return err
		}

		for _, o := range v.Orgs {
			tx, err := all.For(ctx, o.ID)
			if err != nil {
				return err
			}
			f := newOutlook(tx.Now())
			v.ByOrg[o.ID] = f

			if err := f.readUnplugged(ctx, tx); err != nil {
				return err
			}
		}

		counts, err := all.FleetCounts(ctx)
		if err != nil {
			return err
		}

		for _, n := range counts {
			v.Counts[n.Org] = n
		}

		if v.parts == nil {
			v.parts, err = all.PluggedParts(
				ctx,
				min(runtime.GOMAXPROCS(0), fleetReaders),
			)
		}

		return err
	})
}

// readUnplugged adds what is planned of an organisation's batteries, tanks and heat pumps.
func (f *Outlook) readUnplugged(ctx context.Context, tx *store.Tx) error {
	orders, err := tx.BatteryOrders(ctx, f.span())
	if err != nil {
		return err
	}

	for i := range orders {
		f.addDispatch(&orders[i])
	}

	stored, err := tx.BatteryDraws(ctx, f.span(), orders)
	if err != nil {
		return err
	}

	for _, d := range stored {
		f.spread(&f.batteries, d.From.Unix(), d.To.Unix(), int64(d.Power))
	}

	if err := f.readBatteries(ctx, tx, stored); err != nil {
		return err
	}
	if err := f.readFuses(ctx, tx); err != nil {
		return err
	}

	draws, err := tx.HeatDraws(ctx, f.span())
	for i := range draws {
		f.addHeat(&draws[i])
	}

	return err
}

// readPart reads one part of the fleet, and returns what each organisation's assets in it draw.
func (s *Service) readPart(
	ctx context.Context,
	v *Fleet,
	part store.PluggedPart,
) (map[flex.OrgID]*Outlook, error) {
	sums := map[flex.OrgID]*Outlook{}

	return sums, s.DB.ReadAll(ctx, func(all *store.All) error {
		clear(sums) // a read may be run again
		return all.EachPlugged(ctx, part, func(p *store.Plugged) {
			f := sums[p.Org]
			if f == nil {
				whole := v.ByOrg[p.Org]
				if whole == nil {
					return // made since the organisations were listed
				}

				f = whole.part()
				sums[p.Org] = f
			}

			f.add(p)
		})
	})
}

// readPlugged adds every part of the fleet, all at the same time.
func (s *Service) readPlugged(ctx context.Context, v *Fleet) error {
	sums := make([]map[flex.OrgID]*Outlook, len(v.parts))
	errs := make([]error, len(v.parts))
	sizes := make([]int, len(v.parts))
	var readers sync.WaitGroup

	for i, part := range v.parts {
		readers.Go(func() {
			defer flex.Recover(&errs[i])
			sums[i], errs[i] = s.readPart(ctx, v, part)
		})
	}

	readers.Wait()

	for i, sum := range sums {
		for org, f := range sum {
			v.ByOrg[org].join(f)
			sizes[i] += f.plugged
		}
	}

	v.even = len(sizes) > 1 && slices.Max(sizes) <= 2*(slices.Min(sizes)+1)

	return errors.Join(errs...)
}

// Outlook returns the outlook of an organisation, or the sum of all if org is zero. It is the
// caller's own.
func (v *Fleet) Outlook(org flex.OrgID) *Outlook {
	sum := newOutlook(v.At)
	if len(v.Orgs) > 0 { // one clock is common to those that are shown together
		shown := org
		if org.IsZero() {
			shown = v.Orgs[0].ID
		}
		if o := v.ByOrg[shown]; o != nil { // an organisation that is younger than the snapshot has nothing yet
			sum = newOutlook(o.now)
		}
	}

	for _, o := range v.Orgs {
		if org.IsZero() || o.ID == org {
			sum.join(v.ByOrg[o.ID])
		}
	}

	return sum
}
