package grid

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Asked is what a scope should draw in a half-hour; in the running one, in the rest of it.
type Asked struct {
	flex.Period
	Energy flex.WattHours
}

// Follows is the answer whether a scope can draw a profile.
type Follows struct {
	*Envelope
	Yes         bool
	Certificate Certificate // the proof of a no
	// the half-hours of the profile, with what is drawn in them by plan
	Asked []Window
	Parts []Part // for a yes: each asset's part, ordered by id
}

// Certificate is a set of half-hours in which a profile asks for more than the scope can draw,
// or for less than it must: two sums that prove that it cannot be followed.
type Certificate struct {
	HalfHours []flex.Span
	TooMuch   bool // else too little
	Asked     flex.WattHours
	// the most, or the least, that is drawn in these half-hours
	Bound flex.WattHours
}

// Part is what an asset draws in each half-hour of a profile as it is followed, without
// charge-now.
type Part struct {
	AssetID flex.AssetID
	Energy  []flex.WattHours
}

// Follow answers whether a scope can draw exactly a profile in some half-hours, with every
// need met; in the others it is free. A half-hour that is not one of the envelope's, or comes
// twice, is Malformed; an unknown constraint group is NotFound.
func (s *Service) Follow(
	ctx context.Context,
	org flex.OrgID,
	scope flex.Scope,
	profile []Asked,
) (*Follows, error) {
	var g *gathering
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if err := tx.CheckScope(ctx, scope); err != nil {
			return err
		}

		g = gather(tx.Now())
		return g.read(
			ctx,
			tx,
			scope,
		)
	})
	if err != nil {
		return nil, err
	}

	asked, joules, err := g.profile(profile)
	if err != nil {
		return nil, err
	}

	return g.follow(scope, asked, joules), nil
}

// profile returns the half-hours of a profile, and the energy asked for in each, less what
// cannot be moved.
func (g *gathering) profile(profile []Asked) (envelope.Set, []envelope.Joules, error) {
	joules := make([]envelope.Joules, HalfHours)

	var asked envelope.Set
	for i, a := range profile {
		slot := a.Period.Sub(flex.PeriodAt(g.now()))
		if slot < 0 || slot >= HalfHours {
			return 0, nil, flex.Fail(
				flex.Malformed,
				"half_hours[%d] is not among the %d half-hours from now on",
				i,
				HalfHours,
			)
		}

		if asked.Has(slot) {
			return 0, nil, flex.Fail(
				flex.Malformed,
				"half_hours[%d] is there twice",
				i,
			)
		}

		asked |= envelope.Window(slot, slot+1)
		joules[slot] = envelope.Of(a.Energy) - g.fixed[slot]
	}

	return asked, joules, nil
}

// follow computes the answer for a profile.
func (g *gathering) follow(
	scope flex.Scope,
	asked envelope.Set,
	joules []envelope.Joules,
) *Follows {
	f := &Follows{Envelope: g.envelope(scope)}
	for t, h := range f.HalfHours {
		if asked.Has(t) {
			f.Asked = append(f.Asked, h)
		}
	}

	a := g.fleet.Follow(asked, joules)
	f.Yes = a.Follows
	if !a.Follows {
		f.Certificate = g.certificate(&a.Certificate)
		return f
	}

	for i, id := range g.assets {
		p := Part{AssetID: id}
		for t := range HalfHours {
			if asked.Has(t) {
				p.Energy = append(p.Energy, nearest(a.Part(i, t)))
			}
		}

		f.Parts = append(f.Parts, p)
	}

	slices.SortFunc(f.Parts, func(a, b Part) int {
		return slices.Compare(a.AssetID[:], b.AssetID[:])
	})

	return f
}

// certificate returns a certificate in terms of the profile, with what cannot be moved added
// on both sides.
func (g *gathering) certificate(c *envelope.Certificate) Certificate {
	out := Certificate{TooMuch: c.More}
	var fixed envelope.Joules
	for t := range HalfHours {
		if c.Slots.Has(t) {
			fixed += g.fixed[t]
			out.HalfHours = append(out.HalfHours, g.halfHour(t))
		}
	}

	out.Asked = nearest(c.Asked + fixed)
	out.Bound = nearest(c.Bound + fixed)

	return out
}

// String states what a certificate proves.
func (c Certificate) String() string {
	if c.TooMuch {
		return fmt.Sprintf(
			"%.3f kWh are asked for in these half-hours, and %.3f kWh can be drawn in them",
			c.Asked.KWh(),
			c.Bound.KWh(),
		)
	}

	return fmt.Sprintf(
		"%.3f kWh are asked for in these half-hours, and %.3f kWh must be drawn in them if every need is to be met",
		c.Asked.KWh(),
		c.Bound.KWh(),
	)
}
