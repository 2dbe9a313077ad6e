package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/rate"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// AssetRate is the power that an asset really draws, as far as it is known.
type AssetRate struct {
	AssetID flex.AssetID
	Nominal flex.Watts // the lower of charger and car, or the default
	Planned flex.Watts // the power that it is planned with
	// the origin of Planned: readings, operator, or one of nominal power
	Origin string
	Pinned flex.Watts // set by an operator; 0 if not
	// earlier sessions are not used; zero if never reset
	ResetAt time.Time
	rate.Rate
	// by session, the newest first, for all vehicle rates
	Learned []LearnedSession
}

// LearnedSession is what one session shows about the power that an asset draws.
type LearnedSession struct {
	rate.Session
	ID      flex.SessionID
	AssetID flex.AssetID
	Number  int64      // of the session among the asset's
	Vehicle flex.Watts // the vehicle rate of the plug-in; 0 if it had none
}

// Sentence describes the power that the asset is planned with, and its origin.
func (r *AssetRate) Sentence() string {
	if r.Pinned > 0 {
		return "planned with " + kw(r.Planned) +
			" kW, set by an operator; nominal is " + kw(r.Nominal) + " kW"
	}

	if r.HalfHours == 0 {
		return "planned with " + kw(r.Planned) +
			" kW, nominal: nothing was learned yet"
	}

	return "planned with " + kw(r.Planned) + " kW of " + kw(r.Nominal) +
		" kW, " +
		LearnedFrom(r.HalfHours, r.Since, string(r.Certainty))
}

// Rate returns what is known about the power that an asset draws. An asset that does not
// charge, or of another organisation, is NotFound.
func (s *Service) Rate(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) (AssetRate, error) {
	var r AssetRate
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}

		if !c.Asset.Type.Charges() {
			return flex.Fail(
				flex.NotFound,
				"asset %v is a %s, of which no charging rate is learned",
				asset,
				c.Asset.Type,
			)
		}

		r, err = rateOf(ctx, tx, &c)

		return err
	})

	return r, err
}

// rateOf is Rate for an asset that was read.
func rateOf(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (AssetRate, error) {
	r := AssetRate{
		AssetID: c.Asset.ID,
		Pinned:  c.RatePin,
		ResetAt: c.RateSince,
	}

	r.Nominal, r.Origin = powerOf(c)
	sessions, err := tx.RateSessions(ctx, c.Asset.ID)
	if err != nil {
		return r, err
	}

	for _, s := range sessions {
		r.Learned = append(r.Learned, LearnedSession(s))
	}

	var g progress
	now := tx.Now().Truncate(time.Second)

	if c.Open() && c.Current.Generation > 0 {
		g, err = progressOf(ctx, tx, &c.Current, sessionSpan(c, now))
		if err != nil {
			return r, err
		}
	}

	r.Rate = rateWithin(sessions, c, &g, now)

	var less bool
	r.Planned, less = r.Rate.Planned(r.Nominal)
	if less {
		r.Origin = fromReadings
	}

	if r.Pinned > 0 {
		r.Planned, r.Origin = min(r.Nominal, r.Pinned), fromOperator
	}

	return r, nil
}

// The limits of a power that an operator may set. If the power of a charger is known, that is
// the upper limit.
const (
	PinMin flex.Watts = 500
	PinMax flex.Watts = 350_000
)

// PinRate has an asset planned with a power, regardless of what was learned, until ResetRate
// or another call. It is Malformed if the power is out of range or the asset does not charge.
func (s *Service) PinRate(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	power flex.Watts,
) error {
	if power < PinMin || power > PinMax {
		return flex.Fail(
			flex.Malformed,
			"%s kW cannot be set: a charging rate is %s to %s kW",
			kw(power),
			kw(PinMin),
			kw(PinMax),
		)
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil {
			return err
		}

		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}
		if err := checkCharges(&c.Asset); err != nil {
			return err
		}
		if err := checkPinned(&c.Asset, power); err != nil {
			return err
		}

		return tx.PinRate(ctx, asset, power)
	})
}

// checkPinned returns Malformed for a power above the charger's. The power of the car that is
// plugged in does not count: the next one may draw more.
func checkPinned(a *flex.Asset, power flex.Watts) error {
	if a.Power == nil || *a.Power <= 0 || power <= *a.Power {
		return nil
	}

	return flex.Fail(
		flex.Malformed,
		"%s kW cannot be set: the %s can draw %s kW at most",
		kw(power),
		typeName(a.Type),
		kw(*a.Power),
	)
}

// ResetRate removes what was learned about the power of an asset, and a power that was set for
// it. For a heat pump or a hot-water tank it removes the learned thermal model.
func (s *Service) ResetRate(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockAsset(ctx, asset); err != nil {
			return err
		}

		c, err := tx.PlanningState(ctx, asset)
		if err != nil {
			return err
		}

		if c.Asset.Type.Heats() {
			return tx.ResetHeat(ctx, asset)
		}
		if err := checkCharges(&c.Asset); err != nil {
			return err
		}

		return tx.ResetRate(ctx, asset)
	})
}

// checkCharges returns Malformed for an asset that does not charge, as it has no charging
// rate.
func checkCharges(a *flex.Asset) error {
	if a.Type.Charges() {
		return nil
	}

	return flex.Fail(
		flex.Malformed,
		"asset %v is a %s, of which no charging rate is learned",
		a.ID,
		a.Type,
	)
}

// LearnedFrom describes what a rate was learned from.
func LearnedFrom(halfHours int, since time.Time, certainty string) string {
	noun := "half-hours"
	if halfHours == 1 {
		noun = "half-hour"
	}

	return fmt.Sprintf(
		"learned from %d %s since %s, certainty %s",
		halfHours,
		noun,
		since.In(flex.London).Format("2 January 2006"),
		certainty,
	)
}
