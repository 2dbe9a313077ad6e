package api

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// caps answers GET /caps.
func (s *Server) caps(r *request) (answer, error) {
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	c, err := s.Control.Caps(r.Context(), r.who.Org)

	return ok(ShowCaps(c)), err
}

// setCaps answers PUT /caps.
func (s *Server) setCaps(r *request) (answer, error) {
	in := body[wire.Caps](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	c, err := capsNoun(in)
	if err != nil {
		return answer{}, err
	}
	if err := s.Control.SetCaps(r.Context(), r.who.Org, c); err != nil {
		return answer{}, err
	}

	return s.caps(r)
}

// clearCaps answers DELETE /caps.
func (s *Server) clearCaps(r *request) (answer, error) {
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	return noContent(), s.Control.ClearCaps(r.Context(), r.who.Org)
}

func capsNoun(in wire.Caps) (flex.Caps, error) {
	var c flex.Caps
	if in.Fleet != nil {
		c.Fleet = capNoun(in.Fleet.CapKW, in.Fleet.StartsPerMinute)
	}

	for _, g := range in.Groups {
		c.Groups = append(c.Groups, flex.CapGroup{
			Name:   g.Name,
			Parent: g.Parent,
			Cap:    capNoun(g.CapKW, g.StartsPerMinute),
			Sites:  g.SiteIDs,
		})
	}

	for i, t := range in.Position {
		p := flex.PeriodAt(t.StartTimestamp.Time)
		if !p.Start().Equal(t.StartTimestamp.Time) {
			return c, flex.Fail(
				flex.Malformed,
				"position[%d] starts at %s, which is no half-hour: one begins at every hour and 30 minutes past it",
				i,
				t.StartTimestamp.Format(time.RFC3339),
			)
		}

		c.Position = append(c.Position, flex.Traded{
			Period: p,
			Energy: flex.FromKWh(t.EnergyKWh),
			Buy:    flex.FromGBPPerMWh(t.BuyPriceGBPPerMWh),
			Sell:   flex.FromGBPPerMWh(t.SellPriceGBPPerMWh),
		})
	}

	return c, nil
}

func capNoun(kw *float64, starts int) flex.Cap {
	c := flex.Cap{StartsPerMinute: starts}
	if kw != nil {
		c.Power = new(flex.FromKW(*kw))
	}

	return c
}

// ShowCaps writes caps as the interface does.
func ShowCaps(c flex.Caps) wire.Caps {
	out := wire.Caps{
		Groups:   []wire.CapGroup{},
		Position: []wire.TradedHalf{},
	}

	if c.Fleet != (flex.Cap{}) {
		out.Fleet = &wire.Cap{
			CapKW:           kwOrNil(c.Fleet.Power),
			StartsPerMinute: c.Fleet.StartsPerMinute,
		}
	}

	for _, g := range c.Groups {
		sites := g.Sites
		if sites == nil {
			sites = []flex.SiteID{}
		}
		out.Groups = append(out.Groups, wire.CapGroup{
			Name:            g.Name,
			Parent:          g.Parent,
			CapKW:           kwOrNil(g.Power),
			StartsPerMinute: g.StartsPerMinute,
			SiteIDs:         sites,
		})
	}

	for _, t := range c.Position {
		out.Position = append(out.Position, wire.TradedHalf{
			StartTimestamp:     wire.At(t.Period.Start()),
			EnergyKWh:          t.Energy.KWh(),
			BuyPriceGBPPerMWh:  t.Buy.GBPPerMWh(),
			SellPriceGBPPerMWh: t.Sell.GBPPerMWh(),
		})
	}

	return out
}

func kwOrNil(w *flex.Watts) *float64 {
	if w == nil {
		return nil
	}
	return new(w.KW())
}
