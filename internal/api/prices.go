package api

import (
	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/wire"
)

// sitePriceCurve answers GET /entities/site/{site_id}/price-curve.
func (s *Server) sitePriceCurve(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	prices, err := s.Market.SiteCurve(r.Context(), r.who.Org, p.SiteID)

	return answer{body: priceCurve(prices), tagged: true}, err
}

// assetPriceCurve answers GET /entities/asset/{asset_id}/price-curve.
func (s *Server) assetPriceCurve(r *request) (answer, error) {
	p := path[wire.AssetPath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}
	prices, err := s.Market.AssetCurve(r.Context(), r.who.Org, p.AssetID)

	return answer{body: priceCurve(prices), tagged: true}, err
}

func priceCurve(prices []flex.PricedPeriod) wire.PriceCurveResponse {
	rows := make([]wire.HalfHourlyPrice, len(prices))
	for i, p := range prices {
		rows[i] = wire.HalfHourlyPrice{
			StartTimestamp: wire.At(p.Period.Start()),
			PriceGBPPerMWh: shownPrice(p),
		}
	}

	return wire.PriceCurveResponse{HalfHourlyTradedPrices: rows}
}

// shownPrice is a price to two decimals, or null if it is not known.
func shownPrice(p flex.PricedPeriod) *float64 {
	if !p.Known {
		return nil
	}
	return new(market.TwoDecimals(p.Price))
}

// marketCurves answers GET /market/curves.
func (s *Server) marketCurves(r *request) (answer, error) {
	q := query[wire.CurvesQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	var day flex.Day
	if q.Day != nil {
		day = flex.Day(*q.Day)
	}

	c, err := s.Market.Day(r.Context(), r.who.Org, day, q.Source)
	if err != nil {
		return answer{}, err
	}

	v := wire.CurvesResponse{
		Day:          wire.Day(c.Day),
		Prices:       curvePrices(c),
		Publications: publications(c.Publications),
	}

	return answer{body: v, tagged: true}, nil
}

// curvePrices are a day's prices, with the carbon intensity where it is known.
func curvePrices(c market.DayCurve) []wire.CurvePrice {
	shown := make([]wire.CurvePrice, len(c.Quotes))
	for i, quote := range c.Quotes {
		shown[i] = wire.CurvePrice{
			StartTimestamp:    wire.At(quote.Period.Start()),
			PriceGBPPerMWh:    shownPrice(quote.PricedPeriod),
			PublicationID:     quote.From,
			DerivedFromHourly: quote.Derived,
		}

		if carbon, known := c.Carbon[quote.Period]; known {
			shown[i].CarbonGramsPerKWh = new(float64(carbon.Grams))
		}
	}

	return shown
}

func publications(all []market.Version) []wire.Publication {
	shown := make([]wire.Publication, len(all))
	for i, p := range all {
		shown[i] = wire.Publication{
			ID:             p.ID,
			Source:         p.Source,
			PublishedAt:    wire.At(p.PublishedAt),
			FetchedAt:      wire.At(p.FetchedAt),
			StartTimestamp: wire.At(p.Span.From),
			EndTimestamp:   wire.At(p.Span.To),
			NumMissing:     p.Missing,
		}
	}

	return shown
}
