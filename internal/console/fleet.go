package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How old the picture of the fleet may be that is shown. A large fleet's costs something to
// make: then it is kept longer, so that watching takes a small part of the machine, and the
// one that is there is shown while the next is made.
const (
	fleetAge     = 2 * time.Second
	fleetAgeCost = 10 // times the time that it took to make
	fleetOld     = 30 * time.Second
	fleetCheap   = 100 * time.Millisecond // what takes less is made while the page waits
)

// lateAfter is how long a push may wait before it is an exception.
const lateAfter = 2 * time.Minute

// fleetView is a picture of the whole fleet at an instant.
type fleetView struct {
	at     time.Time // by the true clock
	took   time.Duration
	orgs   []flex.Org
	byOrg  map[flex.OrgID]*forecast
	counts map[flex.OrgID]store.FleetCount
	parts  []store.PluggedPart // in which it was read
	even   bool                // whether they were of one size, so that the next is read likewise
}

// fleetCache keeps the latest picture. One request at a time makes a new one.
type fleetCache struct {
	making sync.Mutex
	last   atomic.Pointer[fleetView]
}

// look returns the picture of the fleet, made anew if it is too old.
func (s *Server) look(ctx context.Context) (*fleetView, error) {
	v, now := s.fleet.last.Load(), s.DB.Now()
	if v != nil && !now.Before(v.at) {
		switch age := now.Sub(v.at); {
		case age < max(fleetAge, fleetAgeCost*v.took):
			return v, nil
		case age < fleetOld && v.took > fleetCheap:
			if s.fleet.making.TryLock() {
				go func() {
					defer s.fleet.making.Unlock()
					late, end := context.WithTimeout(context.WithoutCancel(ctx), fleetOld)
					defer end()

					if _, err := s.lookAnew(late); err != nil {
						s.Log.ErrorContext(late, "look at the fleet", "err", err)
					}
				}()
			}

			return v, nil
		}
	}

	s.fleet.making.Lock()
	defer s.fleet.making.Unlock()

	if w := s.fleet.last.Load(); w != v && w != nil && now.Sub(w.at) < fleetAge {
		return w, nil // made while this one waited
	}

	return s.lookAnew(ctx)
}

// fleetHands is how many read the fleet side by side, where there are as many processors.
const fleetHands = 4

// lookAnew makes the picture of the fleet. Each asset is seen once, as it was at one moment
// of the making.
func (s *Server) lookAnew(ctx context.Context) (*fleetView, error) {
	start := time.Now()
	v := &fleetView{at: s.DB.Now(), byOrg: map[flex.OrgID]*forecast{}, counts: map[flex.OrgID]store.FleetCount{}}

	if last := s.fleet.last.Load(); last != nil && last.even {
		v.parts = last.parts
	}

	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		v.orgs, err = all.Orgs(ctx)
		if err != nil {
			return err
		}

		for _, o := range v.orgs {
			tx, err := all.For(ctx, o.ID)
			if err != nil {
				return err
			}
			v.byOrg[o.ID] = newForecast(tx.Now())
		}

		counts, err := all.FleetCounts(ctx)
		if err != nil {
			return err
		}

		for _, n := range counts {
			v.counts[n.Org] = n
		}

		if v.parts == nil {
			v.parts, err = all.PluggedParts(ctx, min(runtime.GOMAXPROCS(0), fleetHands))
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.gather(ctx, v); err != nil {
		return nil, err
	}

	v.took = time.Since(start)
	s.fleet.last.Store(v)
	return v, nil
}

// gather adds every part of the fleet to the picture, side by side.
func (s *Server) gather(ctx context.Context, v *fleetView) error {
	sums := make([]map[flex.OrgID]*forecast, len(v.parts))
	errs := make([]error, len(v.parts))
	sizes := make([]int, len(v.parts))
	var hands sync.WaitGroup

	for i, part := range v.parts {
		hands.Go(func() {
			sums[i] = map[flex.OrgID]*forecast{}
			errs[i] = s.DB.ReadAll(ctx, func(all *store.All) error {
				clear(sums[i]) // a read may be run again
				return all.EachPlugged(ctx, part, func(p *store.Plugged) {
					f := sums[i][p.Org]
					if f == nil {
						whole := v.byOrg[p.Org]
						if whole == nil {
							return // made since the organisations were listed
						}

						f = newForecast(whole.now)
						sums[i][p.Org] = f
					}

					f.add(p)
				})
			})
		})
	}

	hands.Wait()

	for i, sum := range sums {
		for org, f := range sum {
			v.byOrg[org].join(f)
			sizes[i] += f.plugged
		}
	}

	v.even = len(sizes) > 1 && slices.Max(sizes) <= 2*(slices.Min(sizes)+1)
	return errors.Join(errs...)
}

// fleetPage is the fleet as it is now.
type fleetPage struct {
	Orgs       []flex.Org
	Org        flex.OrgID // zero for all
	Alone      bool       // clocks differ, so one organisation is shown at a time
	Now        time.Time
	Sites      int
	Assets     int
	Plugged    int
	Charging   int
	Short      int
	Unplanned  int
	Drawing    flex.Watts
	Lines      []forecastLine
	Exceptions []exception
	Export     Export
	Query      string
}

// exception is something that an operator should look at.
type exception struct {
	Level string // bad, or warn
	Title string
	Text  string // what it means and what to do
	Links []crumb
	More  int // beyond those linked
}

// fleetNow answers the fleet page, its numbers and its stream.
func (s *Server) fleetNow(r *request) (view, error) {
	p, err := s.fleetPage(r)
	if err != nil {
		return view{}, err
	}

	t := &table{Name: "fleet", Columns: []string{"start", "planned_kw", "without_flexd_kw", "lowest_kw", "highest_kw"}}
	for _, l := range p.Lines {
		t.add(l.Start, l.Planned, l.Unmoved, l.Lowest, l.Highest)
	}

	v := view{page: "fleet", title: "Fleet now", data: p, table: t}
	if strings.HasSuffix(r.URL.Path, ".json") {
		v.json = p.numbers()
	}

	return v, nil
}

// fleetNumbers is what the page shows, for programs.
type fleetNumbers struct {
	Now       time.Time      `json:"now"`
	Sites     int            `json:"sites"`
	Assets    int            `json:"assets"`
	Plugged   int            `json:"plugged_in"`
	Charging  int            `json:"charging"`
	Short     int            `json:"short"`
	Unplanned int            `json:"unplanned"`
	DrawingKW float64        `json:"drawing_kw"`
	HalfHours []forecastLine `json:"half_hours"`
}

func (p *fleetPage) numbers() fleetNumbers {
	return fleetNumbers{p.Now, p.Sites, p.Assets, p.Plugged, p.Charging, p.Short, p.Unplanned, p.Drawing.KW(), p.Lines}
}

func (s *Server) fleetPage(r *request) (*fleetPage, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return nil, err
	}

	p := &fleetPage{Orgs: v.orgs, Export: r.exports(), Query: r.URL.RawQuery}
	if err := p.choose(r, v); err != nil {
		return nil, err
	}

	sum := newForecast(v.at)
	if len(v.orgs) > 0 { // one clock is common to those that are shown together
		shown := cmp.Or(p.Org, v.orgs[0].ID)
		sum = newForecast(v.byOrg[shown].now)
	}

	for _, o := range v.orgs {
		if p.Org.IsZero() || o.ID == p.Org {
			sum.join(v.byOrg[o.ID])
			p.Sites += v.counts[o.ID].Sites
			p.Assets += v.counts[o.ID].Assets
		}
	}

	p.Now = sum.now
	p.Plugged = sum.plugged
	p.Charging = sum.charging
	p.Drawing = sum.drawing
	p.Short = sum.short
	p.Unplanned = sum.unplanned
	p.Lines = sum.lines()
	p.Exceptions, err = s.exceptions(r.Context(), v, p.Org, sum)

	return p, err
}

// choose takes the organisation of the filter. Where clocks differ there is no common now,
// and the first organisation is shown if none was chosen.
func (p *fleetPage) choose(r *request, v *fleetView) error {
	if text := r.URL.Query().Get("org"); text != "" {
		if err := readID(&p.Org, text, "organisation"); err != nil {
			return err
		}
		if v.byOrg[p.Org] == nil {
			return flex.Fail(flex.NotFound, "there is no organisation %s", p.Org)
		}
	}

	for _, o := range v.orgs {
		p.Alone = p.Alone || o.ClockOffset != v.orgs[0].ClockOffset
	}

	if p.Alone && p.Org.IsZero() {
		most := slices.MaxFunc(v.orgs, func(a, b flex.Org) int { return cmp.Compare(v.byOrg[a.ID].plugged, v.byOrg[b.ID].plugged) })
		p.Org = most.ID
	}

	return nil
}

// exceptions gathers what an operator should look at, the worst first.
func (s *Server) exceptions(ctx context.Context, v *fleetView, org flex.OrgID, f *forecast) (found []exception, err error) {
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		if f.short > 0 {
			links, err := assetLinks(ctx, all, f.shortIDs)
			if err != nil {
				return err
			}

			found = append(found, exception{Level: "bad", Title: count(f.short, "asset") + " will not have what it needs by ready-by",
				Text:  "The time left is too short, or all of it is peak time that may not be used. The asset's page says which.",
				Links: links, More: f.short - len(links)})
		}

		more, err := s.pushExceptions(ctx, all, v, org)
		if err != nil {
			return err
		}

		found = append(found, more...)
		if f.unplanned > 0 {
			links, err := assetLinks(ctx, all, f.unplannedIDs)
			if err != nil {
				return err
			}

			found = append(found, exception{Level: "warn", Title: count(f.unplanned, "asset") + " plugged in without a schedule",
				Text:  "The site has not consented to full schedule control, or has been withdrawn: the charger does as it likes.",
				Links: links, More: f.unplanned - len(links)})
		}

		return nil
	})
	return append(found, s.roundExceptions()...), err
}

// pushExceptions are those of what is to be sent: pushes that wait, and endpoints that are
// disabled or missing.
func (s *Server) pushExceptions(ctx context.Context, all *store.All, v *fleetView, org flex.OrgID) (found []exception, err error) {
	waiting, total, err := all.WaitingSince(ctx, org, all.Now().Add(-lateAfter), examplesMax)
	if err != nil {
		return nil, fmt.Errorf("read what waits: %w", err)
	}

	if total > 0 {
		e := exception{Level: "bad", Title: count(total, "push") + " not taken for more than " + duration(lateAfter),
			Text: "The client does not answer, or refuses for now. Chargers go on with what they have.", More: total - len(waiting)}

		var ids []flex.AssetID
		for _, w := range waiting {
			if !w.AssetID.IsZero() {
				ids = append(ids, w.AssetID)
			}
		}

		e.Links, err = assetLinks(ctx, all, ids)
		if err != nil {
			return nil, err
		}

		found = append(found, e)
	}

	endpoints, err := all.AllEndpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}

	has := map[flex.OrgID]bool{}
	for _, e := range endpoints {
		has[e.Org] = has[e.Org] || e.Name == store.ScheduleEndpoint
		if !e.Enabled && (org.IsZero() || org == e.Org) {
			found = append(found, exception{Level: "bad", Title: fmt.Sprintf("The %s endpoint of %s is disabled", e.Name, v.name(e.Org)),
				Text: sentence(e.Reason) + " What is due waits until it is set or enabled again."})
		}
	}

	for _, o := range v.orgs {
		if !has[o.ID] && v.byOrg[o.ID].planned > 0 && (org.IsZero() || org == o.ID) {
			found = append(found, exception{Level: "bad", Title: o.Name + " has no endpoint for schedules",
				Text: "Its assets are planned and nobody is told. Set one: flexd endpoint set, or PUT /endpoints/schedule."})
		}
	}

	return found, nil
}

// roundExceptions are the background jobs whose latest run failed.
func (s *Server) roundExceptions() (found []exception) {
	if s.Jobs == nil {
		return nil
	}

	for _, w := range s.Jobs() {
		if last := w.Last(); last.Err != nil {
			found = append(found, exception{Level: "bad", Title: fmt.Sprintf("The round %q failed", w.Name),
				Text: "It is tried again by itself; the log has the reason."})
		}
	}

	return found
}

func (v *fleetView) name(org flex.OrgID) string {
	for _, o := range v.orgs {
		if o.ID == org {
			return o.Name
		}
	}
	return org.String()
}

func assetLinks(ctx context.Context, all *store.All, ids []flex.AssetID) ([]crumb, error) {
	if len(ids) > examplesMax {
		ids = ids[:examplesMax]
	}

	names, err := all.AssetNames(ctx, ids)
	var links []crumb

	for _, id := range ids {
		if names[id] != "" {
			links = append(links, crumb{names[id], "/console/assets/" + id.String()})
		}
	}

	return links, err
}
