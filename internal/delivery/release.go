package delivery

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// After a dispatch a battery returns to what it did before. It is checked by the inverter's
// readings that begin within releaseTime of the end: the last of them must not be within
// releaseShare of the dispatched power, nor within releaseNoise.
const (
	releaseTime  = time.Hour
	releaseShare = 0.1
	releaseNoise = 100 // W
)

// Release says whether an asset has returned to what it did before a dispatch.
type Release string

// The states of a release.
const (
	ReleaseAhead   Release = "ahead"   // the dispatch is not over
	ReleaseUnknown Release = "unknown" // there is no reading since
	ReleaseDone    Release = "done"    // it does not follow the dispatch, or the client refused that
	// it still follows the dispatch that is over
	ReleaseMissing Release = "missing"
	// a newer dispatch replaced it until its end: the release of that one is checked
	ReleaseReplaced Release = "replaced"
)

// Dispatched is a dispatch with its state and that of its assets.
type Dispatched struct {
	ID       flex.EventID
	Market   string    // the interface's market_id
	IssuedAt time.Time // by the organisation's clock, as is the span
	flex.Span
	Batch  bool   // one message for all its assets; else it has one asset
	State  string // of its push
	Assets []DispatchedAsset
}

// DispatchedAsset is an asset's part in a dispatch, with its reports and its release.
type DispatchedAsset struct {
	ID       flex.AssetID
	Power    flex.Watts          // positive draws from the grid
	Callback flex.CallbackStatus // the furthest status reported, "" if none
	Release  Release
	// when newer dispatches replaced it, the earliest first
	Replaced []flex.Span
}

// ReplacedFrom is when a newer dispatch first replaced it; zero if none did.
func (a *DispatchedAsset) ReplacedFrom() time.Time {
	if len(a.Replaced) == 0 {
		return time.Time{}
	}
	return a.Replaced[0].From
}

// Dispatches returns the organisation's dispatches, the newest first.
func (s *Service) Dispatches(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]Dispatched, error) {
	var out []Dispatched
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		ds, err := tx.Dispatches(ctx, limit)
		if err != nil {
			return err
		}

		out = make([]Dispatched, len(ds))
		for i := range ds {
			out[i], err = dispatchedOf(ctx, tx, ds[i])
			if err != nil {
				return err
			}
		}

		return nil
	})

	return out, err
}

// furthestReported returns the furthest status reported by each asset of a dispatch.
func furthestReported(
	ctx context.Context,
	tx *store.Tx,
	id flex.EventID,
) (map[flex.AssetID]flex.CallbackStatus, error) {
	reports, err := tx.Callbacks(ctx, id)
	if err != nil {
		return nil, err
	}

	furthest := map[flex.AssetID]flex.CallbackStatus{}
	for _, r := range reports {
		if r.Status.Stage() > furthest[r.AssetID].Stage() {
			furthest[r.AssetID] = r.Status
		}
	}

	return furthest, nil
}

func dispatchedOf(
	ctx context.Context,
	tx *store.Tx,
	d store.Dispatch,
) (Dispatched, error) {
	out := dispatchView(&d)
	delivery, _, err := tx.Delivery(ctx, d.ID)
	if err != nil && flex.KindOf(err) != flex.NotFound { // deleted after its retention
		return out, err
	}

	out.State = string(delivery.State)

	results, err := dispatchResultsOf(ctx, tx, d)
	if err != nil {
		return out, err
	}

	for _, a := range d.Assets {
		out.Assets = append(out.Assets, results.of(&d, a, tx.Now()))
	}

	return out, nil
}

// dispatchResults is what is known of the assets of a dispatch since it was sent.
type dispatchResults struct {
	furthest map[flex.AssetID]flex.CallbackStatus
	replaced []Replaced
	after    map[flex.AssetID]flex.Watts // the power after the dispatch
	refused  map[store.DispatchPart]bool
}

func dispatchResultsOf(
	ctx context.Context,
	tx *store.Tx,
	d store.Dispatch,
) (dispatchResults, error) {
	var r dispatchResults
	var err error

	r.furthest, err = furthestReported(ctx, tx, d.ID)
	if err != nil {
		return r, err
	}

	r.replaced, err = replacedTimes(ctx, tx, d.ID)
	if err != nil {
		return r, err
	}

	r.after, err = powersAfter(ctx, tx, d)
	if err != nil {
		return r, err
	}

	r.refused, err = tx.RefusedParts(ctx, []flex.EventID{d.ID})

	return r, err
}

// of returns an asset of the dispatch with its results.
func (r *dispatchResults) of(d *store.Dispatch, a store.DispatchedAsset, now time.Time) DispatchedAsset {
	part := DispatchedAsset{
		ID:       a.ID,
		Power:    a.Power,
		Callback: r.furthest[a.ID],
		Release:  ReleaseAhead,
	}

	power, known := r.after[a.ID]
	part.addRelease(now, d.To, power, known)

	// An asset that refused the dispatch never followed it.
	refused := r.refused[store.DispatchPart{Event: d.ID, Asset: a.ID}]
	if refused && part.Release == ReleaseMissing {
		part.Release = ReleaseDone
	}
	part.replacedBy(d.To, r.replaced)

	return part
}

// addRelease sets whether the asset returned from a dispatch that ends at to, by its power
// since.
func (a *DispatchedAsset) addRelease(now, to time.Time, power flex.Watts, known bool) {
	if !now.Before(to) {
		a.Release = releaseOf(a.Power, power, known)
	}
}

// dispatchView returns a dispatch as it was sent, without its results.
func dispatchView(d *store.Dispatch) Dispatched {
	return Dispatched{
		ID:       d.ID,
		Market:   d.Market,
		IssuedAt: d.IssuedAt,
		Span:     d.Span,
		Batch:    d.Batch,
	}
}

// replacedBy sets when newer dispatches replaced an asset's part that ends at to.
func (a *DispatchedAsset) replacedBy(to time.Time, all []Replaced) {
	for _, r := range all {
		if r.AssetID != a.ID {
			continue
		}

		a.Replaced = append(a.Replaced, r.Span)
		if !r.To.Before(to) {
			a.Release = ReleaseReplaced
		}
	}
}

// Replaced is a time of an asset's part in a dispatch in which a newer dispatch replaced it.
type Replaced struct {
	AssetID flex.AssetID
	By      flex.EventID // the newer one
	flex.Span
}

// replacedTimes returns when newer dispatches replaced one, the earliest first.
func replacedTimes(
	ctx context.Context,
	tx *store.Tx,
	id flex.EventID,
) ([]Replaced, error) {
	found, err := tx.Replaced(ctx, id)
	var times []Replaced
	for _, r := range found {
		times = append(times, Replaced(r))
	}

	return times, err
}

func releaseOf(power, now flex.Watts, known bool) Release {
	off := max(now-power, power-now)
	if !known {
		return ReleaseUnknown
	}

	if power == 0 {
		return ReleaseDone // its power was too small to tell whether the asset continues
	}

	if off > releaseNoise && float64(off) > releaseShare*float64(max(power, -power)) {
		return ReleaseDone
	}

	return ReleaseMissing
}

// powersAfter returns the last known power of each battery in the releaseTime after the
// dispatch.
func powersAfter(
	ctx context.Context,
	tx *store.Tx,
	d store.Dispatch,
) (map[flex.AssetID]flex.Watts, error) {
	after := flex.Span{From: d.To, To: d.To.Add(releaseTime)}
	q := store.ReadingQuery{
		Labels: []flex.Label{flex.BatteryInverterPower},
		Days:   []flex.Day{flex.DayAt(after.From)},
	}
	if last := flex.DayAt(after.To); last != q.Days[0] {
		q.Days = append(q.Days, last)
	}

	for _, a := range d.Assets {
		q.Assets = append(q.Assets, a.ID)
	}

	readings, err := tx.Readings(ctx, q)
	power, at := map[flex.AssetID]flex.Watts{}, map[flex.AssetID]time.Time{}

	for _, r := range readings {
		if after.Contains(r.From) && !r.From.Before(at[r.AssetID]) {
			// from millionths of a kilowatt
			power[r.AssetID], at[r.AssetID] = flex.Watts(r.Value/1000), r.From
		}
	}

	return power, err
}
