package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Limits of following.
const (
	FollowersMax       = 10_000 // on one process
	FollowersOfOrgMax  = 2_000
	FollowersOfSiteMax = 10

	// followEvery is how often the followed sites are read without a wake-up: other processes
	// may have changed them.
	followEvery = 2 * time.Second
	// followLeast is the least time between two reads.
	followLeast = 200 * time.Millisecond
	// followRead is how long a read may take before its followers' channels are closed.
	followRead = 5 * time.Second
)

// SiteNow is the state of a site's assets at an instant.
type SiteNow struct {
	Site   flex.SiteID
	At     time.Time
	Assets []AssetNow
}

// AssetNow is the state of an asset, as far as it can be followed.
type AssetNow struct {
	ID         flex.AssetID
	ExternalID string
	Type       flex.AssetType

	Session      flex.SessionID // the newest; zero if there never was one
	PluggedInAt  time.Time
	PluggedOutAt time.Time // zero while it continues
	ReadyBy      time.Time
	Schedule     flex.EventID // in force; zero for none
	Generation   int64
	// the newest generation that the client has taken; 0 for none
	Accepted    int64
	ChargeNowTo time.Time // zero unless it charges at once still
	AwayTo      time.Time // zero unless nothing is needed still
}

// PluggedIn reports whether a session continues.
func (a *AssetNow) PluggedIn() bool {
	return !a.PluggedInAt.IsZero() && a.PluggedOutAt.IsZero()
}

// SiteNow returns the state of a site's assets. A site that is not the organisation's is
// NotFound.
func (s *Service) SiteNow(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (SiteNow, error) {
	var now SiteNow
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		found, err := sitesNow(ctx, tx, []flex.SiteID{site})
		now = found[site]
		return err
	})

	return now, err
}

// sitesNow reads the states of sites.
func sitesNow(
	ctx context.Context,
	tx *store.Tx,
	sites []flex.SiteID,
) (map[flex.SiteID]SiteNow, error) {
	found, err := tx.AssetsNow(ctx, sites)
	if err != nil {
		return nil, err
	}

	all := make(map[flex.SiteID]SiteNow, len(sites))
	for _, id := range sites {
		all[id] = SiteNow{Site: id, At: tx.Now()}
	}

	for i := range found {
		at := all[found[i].SiteID]
		at.Assets = append(at.Assets, assetNow(&found[i], tx.Now()))
		all[found[i].SiteID] = at
	}

	return all, nil
}

// assetNow returns the state of an asset, without what is over.
func assetNow(a *store.AssetNow, now time.Time) AssetNow {
	v := AssetNow{
		ID:           a.ID,
		ExternalID:   a.ExternalID,
		Type:         a.Type,
		Session:      a.Session,
		PluggedInAt:  a.PluggedInAt,
		PluggedOutAt: a.PluggedOutAt,
		ReadyBy:      a.ReadyBy,
	}

	if a.ChargeNowTo.After(now) {
		v.ChargeNowTo = a.ChargeNowTo
	}
	if a.AwayTo.After(now) {
		v.AwayTo = a.AwayTo
	}

	if v.PluggedIn() {
		v.Schedule, v.Generation = a.Schedule, a.Generation
		v.Accepted = min(a.Accepted, a.Generation)
	}

	return v
}

// follower is one subscription to a site's states.
type follower struct {
	org  flex.OrgID
	site flex.SiteID
	// only the newest state; closed if the site could not be read
	news chan SiteNow
	last *SiteNow // the last state that was sent; nil before the first
}

// followers are all subscriptions of one process. One goroutine reads for all of them while
// there are any.
type followers struct {
	mu      sync.Mutex
	all     map[*follower]struct{}
	reading bool

	// wake-ups after which a state may have changed; made with the first follower
	wakes [3]<-chan struct{}
	hurry chan struct{} // a new follower waits for its first state
}

// Follow returns a channel of a site's states: the present one, and then one after each
// change. A slow receiver gets only the newest state. The channel is closed if the store does
// not answer, or does not have the site any more; call Follow again then. leave ends the
// subscription. A site that is not the organisation's is NotFound; beyond the limits it is
// TooMany.
func (s *Service) Follow(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (news <-chan SiteNow, leave func(), err error) {
	if _, err := s.SiteNow(ctx, org, site); err != nil {
		return nil, nil, err
	}

	f := &follower{
		org:  org,
		site: site,
		news: make(chan SiteNow, 1),
	}

	if err := s.followers.join(s, f); err != nil {
		return nil, nil, err
	}

	return f.news, func() { s.followers.leave(f) }, nil
}

func (fs *followers) join(d *Service, f *follower) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()

	ofOrg, ofSite := 0, 0
	for other := range fs.all {
		if other.org == f.org {
			ofOrg++
		}

		if other.site == f.site {
			ofSite++
		}
	}

	if len(fs.all) >= FollowersMax {
		return flex.Fail(
			flex.TooMany,
			"%d sites are followed already: ask again later",
			FollowersMax,
		)
	}

	if ofOrg >= FollowersOfOrgMax {
		return flex.Fail(
			flex.TooMany,
			"the organisation follows %d sites already, as many as it may",
			FollowersOfOrgMax,
		)
	}

	if ofSite >= FollowersOfSiteMax {
		return flex.Fail(
			flex.TooMany,
			"the site is followed %d times already, as often as it may be",
			FollowersOfSiteMax,
		)
	}

	if fs.all == nil {
		fs.all = map[*follower]struct{}{}
		fs.hurry = make(chan struct{}, 1)
		fs.wakes = [3]<-chan struct{}{
			d.DB.Waker(store.WakePush),
			d.DB.Waker(store.WakeSettle),
			d.DB.Waker(store.WakeWatch),
		}
	}

	fs.all[f] = struct{}{}
	select {
	case fs.hurry <- struct{}{}:
	default: // one is waiting already
	}

	if !fs.reading {
		fs.reading = true
		go fs.read(d)
	}

	return nil
}

func (fs *followers) leave(f *follower) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.all, f)
}

// read reads the followed sites until nobody follows any.
func (fs *followers) read(d *Service) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()

	for fs.readAll(d) {
		select {
		case <-fs.hurry:
		case <-fs.wakes[0]:
		case <-fs.wakes[1]:
		case <-fs.wakes[2]:
		case <-tick.C:
		}
		time.Sleep(followLeast)
	}
}

// readAll reads the followed sites of each organisation once, and reports whether there are
// any.
func (fs *followers) readAll(d *Service) bool {
	sites := fs.sites()
	for org, ids := range sites {
		ctx, cancel := context.WithTimeout(context.Background(), followRead)
		now, err := d.followed(ctx, org, ids)
		cancel()

		if err != nil {
			d.log().Warn(
				"sites that are followed could not be read: their streams end",
				"org",
				org,
				"err",
				err,
			)
		}
		fs.notify(org, now)
	}

	return len(sites) > 0
}

// followed reads an organisation's followed sites.
func (s *Service) followed(
	ctx context.Context,
	org flex.OrgID,
	ids []flex.SiteID,
) (now map[flex.SiteID]SiteNow, err error) {
	defer flex.Recover(&err)

	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		now, err = sitesNow(ctx, tx, ids)
		if err != nil {
			return err
		}

		return markGone(ctx, tx, now)
	})
	if err != nil {
		return nil, err
	}

	return now, nil
}

// markGone sets the state of each site that does not exist any more to zero: it was erased, or
// its organisation has moved to another cell, where it still has its assets.
func markGone(
	ctx context.Context,
	tx *store.Tx,
	now map[flex.SiteID]SiteNow,
) error {
	for id, state := range now {
		if len(state.Assets) > 0 {
			continue
		}

		_, err := tx.Site(ctx, id)
		if flex.KindOf(err) == flex.NotFound {
			now[id] = SiteNow{}
		} else if err != nil {
			return err
		}
	}

	return nil
}

// sites returns the followed sites by organisation, each once. If there are none, reading
// ends.
func (fs *followers) sites() map[flex.OrgID][]flex.SiteID {
	fs.mu.Lock()
	defer fs.mu.Unlock()

	by := map[flex.OrgID][]flex.SiteID{}
	listed := map[flex.SiteID]bool{}
	for f := range fs.all {
		if !listed[f.site] {
			listed[f.site] = true
			by[f.org] = append(by[f.org], f.site)
		}
	}

	fs.reading = len(by) > 0

	return by
}

// notify sends an organisation's followers the states that are new to them. If the states
// could not be read (now is nil), or a site is gone, the channels are closed.
func (fs *followers) notify(org flex.OrgID, now map[flex.SiteID]SiteNow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()

	for f := range fs.all {
		if f.org != org {
			continue
		}

		state, known := now[f.site]
		if now == nil || known && state.Site.IsZero() {
			delete(fs.all, f)
			close(f.news)
			continue
		}

		if !known ||
			f.last != nil && slices.Equal(f.last.Assets, state.Assets) {
			continue
		}

		f.last = &state
		select {
		case <-f.news: // an older state that was not received
		default:
		}
		f.news <- state
	}
}
