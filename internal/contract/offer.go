package contract

import (
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// OfferOf reads an offer that is asked for.
func OfferOf(in *wire.OfferRequest, who string) flex.Offer {
	o := flex.Offer{
		Span: flex.Span{
			From: in.StartTimestamp.UTC(),
			To:   in.EndTimestamp.UTC(),
		},
		Scope:      flex.Scope{Group: in.Group, GSPGroup: in.GSPGroup},
		Service:    in.Service,
		Up:         in.Direction == grid.Direction(true),
		Confidence: in.Confidence,
		Who:        who,
	}

	if o.Confidence == 0 {
		o.Confidence = 90
	}

	return o
}

// OfferStack is what can be offered, with the offer if it was kept.
func OfferStack(s *grid.Stack) wire.OfferStack {
	kind := 1 // turn-down
	if s.Up {
		kind = 2
	}

	d := wire.OfferStack{
		At:          wire.At(s.At),
		NumDays:     s.Days,
		Rungs:       []wire.OfferRung{},
		Reliability: Ahead(s.Ahead).Reliability[kind],
	}

	for _, r := range s.Rungs {
		d.Rungs = append(d.Rungs, wire.OfferRung{
			Confidence:     r.Confidence,
			PowerMW:        r.Power.KW() / 1000,
			PriceGBPPerMWh: r.Price.GBPPerMWh(),
		})
	}

	if !s.ID.IsZero() {
		d.Offer = new(offer(&s.Offer))
	}

	return d
}

func offer(o *flex.Offer) wire.Offer {
	d := wire.Offer{
		ID:             o.ID,
		Service:        o.Service,
		Direction:      grid.Direction(o.Up),
		StartTimestamp: wire.At(o.From),
		EndTimestamp:   wire.At(o.To),
		Group:          o.Scope.Group,
		GSPGroup:       o.Scope.GSPGroup,
		Confidence:     o.Confidence,
		PowerKW:        o.Power.KW(),
		PriceGBPPerMWh: o.Price.GBPPerMWh(),
		Who:            o.Who,
		MadeAt:         wire.At(o.MadeAt),
		AcceptedAt:     wire.At(o.AcceptedAt),
		InstructionID:  o.Instruction,
	}

	if !o.AcceptedAt.IsZero() {
		d.AcceptedKW = new(o.Accepted.KW())
	}

	return d
}

// OfferPage is a page of offers.
func OfferPage(p *grid.OfferPage) wire.OfferPage {
	d := wire.OfferPage{
		Offers:    []wire.Offer{},
		NumTotal:  p.Total,
		NumJudged: p.Judged,
		NumKept:   p.Met,
		Next:      p.Next,
	}

	for _, l := range p.Offers {
		o := offer(&l.Offer)
		if l.Over {
			o.CameKW, o.Kept = new(l.Actual.KW()), new(l.Met())
		}

		if l.Settled.Found > l.Settled.Waiting {
			o.DeliveredKWh = new(l.Settled.Flex.KWh())
		}
		d.Offers = append(d.Offers, o)
	}

	return d
}
