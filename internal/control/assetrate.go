package control

import (
	"context"
	"time"

	"flexd/internal/engine/rate"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// AssetRate is what is known of the power that an asset really draws.
type AssetRate struct {
	AssetID flex.AssetID
	Nominal flex.Watts // the lower of charger and car, or the default
	Planned flex.Watts // what it is planned with
	// of Planned: readings, operator, or as of a nominal power
	Origin string
	Pinned flex.Watts // by an operator; 0 if not
	// what it drew before teaches nothing; zero if never reset
	ResetAt time.Time
	rate.Rate
	// by each session, the newest first, of every vehicle rate
	Learned []LearnedSession
}

// LearnedSession is what was learned from one session of the power that an asset draws.
type LearnedSession struct {
	rate.Session
	ID      flex.SessionID
	AssetID flex.AssetID
	Number  int64      // of the session among the asset's
	Vehicle flex.Watts // 0 if its plug-in named none
}

// Sentence says what is planned with, and why.
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

// Rate returns what is known of the power that an asset draws. One that does not charge, or is
// another organisation's, is NotFound.
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

// rateOf is Rate of an asset that charges.
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

// The bounds of a power that an operator may set. Of a charger with a known power, that is the
// upper one.
const (
	PinMin flex.Watts = 500
	PinMax flex.Watts = 350_000
)

// PinRate has an asset planned with a power, whatever was learned, until ResetRate or another.
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
		if err := charges(&c.Asset); err != nil {
			return err
		}
		if err := canDraw(&c.Asset, power); err != nil {
			return err
		}

		return tx.PinRate(ctx, asset, power)
	})
}

// canDraw is an error if a power is more than a charger has. That of the car that is plugged
// in does not count: the next one may draw more.
func canDraw(a *flex.Asset, power flex.Watts) error {
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

// ResetRate forgets what was learned of an asset, and a power that was set for it; of a heat
// pump or a hot-water tank, what was learned of its heat.
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
		if err := charges(&c.Asset); err != nil {
			return err
		}

		return tx.ResetRate(ctx, asset)
	})
}

// charges is an error if no charging rate is learned of an asset.
func charges(a *flex.Asset) error {
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
