package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Limits of subscriptions to the states of sites.
const (
	FollowersMax       = 10_000 // on one process
	FollowersOfOrgMax  = 2_000
	FollowersOfSiteMax = 10

	// followInterval is how often the followed sites are read without a wake-up: other
	// processes may have changed them.
	followInterval = 2 * time.Second
	// minFollowInterval is the least time between two reads.
	minFollowInterval = 200 * time.Millisecond
	// followTimeout is the longest time of a read. After it the channels of its followers are
	// closed.
	followTimeout = 5 * time.Second
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
	// the newest generation that the client has accepted; 0 for none
	Accepted    int64
	ChargeNowTo time.Time // zero unless it is in charge-now
	AwayTo      time.Time // zero unless an absence continues
}

// PluggedIn reports whether a session continues.
func (a *AssetNow) PluggedIn() bool {
	return !a.PluggedInAt.IsZero() && a.PluggedOutAt.IsZero()
}

// SiteNow returns the state of a site's assets. A site of another organisation is NotFound.
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

// assetNow returns the state of an asset. Times that are over are left out.
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
	updates  chan SiteNow
	lastSent *SiteNow // the last state that was sent; nil before the first
}

// followers are all subscriptions of one process. One goroutine reads for all of them while
// there are any.
type followers struct {
	mu      sync.Mutex
	all     map[*follower]struct{}
	reading bool

	// wake-ups after which a state may have changed; made with the first follower
	wakeUps [3]<-chan struct{}
	readNow chan struct{} // there is a new follower
}

// Follow returns a channel of a site's states: the present one, and then one after each
// change. A slow receiver gets only the newest state. The channel is closed if the store does
// not answer, or no longer has the site; then Follow may be called again. leave ends the
// subscription. A site of another organisation is NotFound; beyond the limits the error is
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
		org:     org,
		site:    site,
		updates: make(chan SiteNow, 1),
	}

	if err := s.followers.subscribe(s, f); err != nil {
		return nil, nil, err
	}

	return f.updates, func() { s.followers.unsubscribe(f) }, nil
}

func (fs *followers) subscribe(d *Service, f *follower) error {
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
		fs.readNow = make(chan struct{}, 1)
		fs.wakeUps = [3]<-chan struct{}{
			d.DB.Waker(store.WakePush),
			d.DB.Waker(store.WakeSettle),
			d.DB.Waker(store.WakeWatch),
		}
	}

	fs.all[f] = struct{}{}
	select {
	case fs.readNow <- struct{}{}:
	default: // a read is due already
	}

	if !fs.reading {
		fs.reading = true
		go fs.read(d)
	}

	return nil
}

func (fs *followers) unsubscribe(f *follower) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.all, f)
}

// read reads the followed sites until nobody follows any.
func (fs *followers) read(d *Service) {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()

	for fs.readAll(d) {
		select {
		case <-fs.readNow:
		case <-fs.wakeUps[0]:
		case <-fs.wakeUps[1]:
		case <-fs.wakeUps[2]:
		case <-tick.C:
		}
		time.Sleep(minFollowInterval)
	}
}

// readAll reads the followed sites of each organisation once, and reports whether there are
// any.
func (fs *followers) readAll(d *Service) bool {
	sites := fs.sites()
	for org, ids := range sites {
		ctx, cancel := context.WithTimeout(context.Background(), followTimeout)
		now, err := d.readFollowed(ctx, org, ids)
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

// readFollowed reads an organisation's followed sites.
func (s *Service) readFollowed(
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

		return markDeleted(ctx, tx, now)
	})
	if err != nil {
		return nil, err
	}

	return now, nil
}

// markDeleted sets the state of each site that no longer exists to zero: it was erased, or its
// organisation was moved to another cell. A moved site still has its assets here.
func markDeleted(
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

// sites returns the followed sites by organisation, each once. It also notes that reading ends
// if there are none.
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
			close(f.updates)
			continue
		}

		if !known ||
			f.lastSent != nil && slices.Equal(f.lastSent.Assets, state.Assets) {
			continue
		}

		f.lastSent = &state
		select {
		case <-f.updates: // an older state that was not received
		default:
		}
		f.updates <- state
	}
}
