package api

import (
	"flexd/internal/wire"
)

// pricesRoutes are the operations of prices.
var pricesRoutes = []Route{
	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/price-curve",
		Role:      toRead,
		Component: true,
		handle:    (*Server).assetPriceCurve,
		Operation: &Operation{
			ID:      "get_price_curve_entities_asset__asset_id__price_curve_get",
			Tag:     "assets",
			Summary: "Half-hourly prices for an asset",
			Text: "From the current settlement period to 23:00 UK time, of the next day once its prices are out at " +
				"14:00.",
			Answer: Answer{
				Text: "The curve.",
				Body: sample[wire.PriceCurveResponse](samplePriceCurveResponse),
			},
			Problems: []Problem{notModified, notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/market/curves",
		Role:    toRead,
		handle:  (*Server).marketCurves,
		Operation: &Operation{
			ID: "get_market_curves", Tag: "market", Addition: true,
			Summary: "A day's curve and where it comes from",
			Text:    "With carbon intensity beside the price.",
			Answer: Answer{
				Text: "The curve.",
				Body: sample[wire.CurvesResponse](`{
				"day": "2026-01-15",
				"prices": [
					{
						"start_timestamp": "2026-01-15T00:00:00Z",
						"price_gbp_per_mwh": 61.2,
						"carbon_g_per_kwh": 142,
						"publication_id": "07b8c9d0-e1f2-4345-8012-789012345678",
						"derived_from_hourly": false
					}
				],
				"publications": [
					{
						"id": "07b8c9d0-e1f2-4345-8012-789012345678",
						"source": "elexon",
						"published_at": "2026-01-14T14:00:00Z",
						"fetched_at": "2026-01-14T13:58:12Z",
						"start_timestamp": "2026-01-15T00:00:00Z",
						"end_timestamp": "2026-01-16T00:00:00Z",
						"num_missing": 0
					}
				]
			}`),
			},
			Problems: []Problem{notModified},
		},
	},
}
