package api

import (
	"flexd/internal/wire"
)

// sampleSiteResponse is one as several operations show it.
const sampleSiteResponse = `{
	"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
	"mpan": "1234567890126",
	"postcode": "SW1A 1AA",
	"address": "10 Downing Street",
	"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
	"markets": ["wholesale"],
	"dispatch_methods": ["full_asset_schedule_control"],
	"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
}`

// samplePriceCurveResponse is one as several operations show it.
const samplePriceCurveResponse = `{
	"half_hourly_traded_prices": [
		{"start_timestamp": "2026-01-01T10:00:00Z", "price_gbp_per_mwh": -20.0},
		{"start_timestamp": "2026-01-01T10:30:00Z", "price_gbp_per_mwh": 50.0},
		{"start_timestamp": "2026-01-01T11:00:00Z", "price_gbp_per_mwh": null}
	]
}`

// sampleSolarForecastResponse is one as several operations show it.
const sampleSolarForecastResponse = `{
	"source": "weather.example",
	"given_at": "2026-01-15T06:00:00Z",
	"half_hours": [
		{"start_timestamp": "2026-01-15T12:00:00Z", "energy_kwh": 0.8, "origin": "given"},
		{"start_timestamp": "2026-01-15T12:30:00Z", "energy_kwh": 0.4, "origin": "metered"}
	]
}`

// sitesRoutes are the operations of sites.
var sitesRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/entities/site",
		Role:    toRead,
		handle:  (*Server).listSites,
		Operation: &Operation{
			ID: "get_sites_entities_site_get", Tag: "sites",
			Summary: "List sites",
			Text:    "In the order of their making.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.SiteResponsePage](`{
				"sites": [
					{
						"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
						"mpan": "1234567890126",
						"postcode": "SW1A 1AA",
						"address": "10 Downing Street",
						"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
						"markets": ["wholesale"],
						"dispatch_methods": ["full_asset_schedule_control"],
						"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
					}
				],
				"total_num_sites": 1,
				"total_num_pages": 1,
				"page_number": 1
			}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site",
		Role:    toWrite,
		Limit:   mib,
		Flat:    true,
		handle:  (*Server).createSite,
		Operation: &Operation{
			ID: "create_site_entities_site_post", Tag: "sites",
			Summary: "Register a site",
			Body: sample[wire.SiteRequest](`{
				"mpan": "1234567890126",
				"postcode": "SW1A 1AA",
				"street_address": "10 Downing Street",
				"email": "resident@example.com",
				"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
			}`),
			Answer: Answer{
				Text: "The new site.",
				Body: sample[wire.SiteResponse](`{
				"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"mpan": "1234567890126",
				"postcode": "SW1A 1AA",
				"address": "10 Downing Street",
				"asset_ids": [],
				"markets": ["wholesale"],
				"dispatch_methods": [],
				"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}",
		Role:      toRead,
		Component: true,
		handle:    (*Server).getSite,
		Operation: &Operation{
			ID: "get_site_entities_site__site_id__get", Tag: "sites",
			Summary: "One site",
			Answer: Answer{
				Text: "The site.",
				Body: sample[wire.SiteResponse](sampleSiteResponse),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "PATCH",
		Pattern: "/entities/site/{site_id}",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).updateSite,
		Operation: &Operation{
			ID: "update_site_entities_site__site_id__patch", Tag: "sites",
			Summary: "Change a site",
			Body: sample[wire.SiteUpdateRequest](`{
				"tariff": {
					"tariff_type": "dual_rate",
					"tariff_cheap_start_time": "23:30:00",
					"tariff_cheap_end_time": "05:30:00"
				},
				"email": "new@example.com"
			}`),
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](sampleSiteResponse),
			},
			Problems: []Problem{notFound, unavailable, timedOut},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/entities/site/{site_id}",
		Role:    toWrite,
		handle:  (*Server).deleteSite,
		Operation: &Operation{
			ID: "delete_site_entities_site__site_id__delete", Tag: "sites",
			Summary:  "Delete a site without assets",
			Answer:   Answer{Text: "It is gone.", Empty: true},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/token",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).siteToken,
		Operation: &Operation{
			ID:      "add_site_auth_token_entities_site__site_id__token_post",
			Tag:     "sites",
			Summary: "Store access to a manufacturer's cloud",
			Body: sample[wire.SiteAuthTokenRequest](`{
				"refresh_token": "1//0g…",
				"access_token": "ya29.…",
				"token_type": "Bearer",
				"expires_in": 3600
			}`),
			Answer:   Answer{Text: "Stored."},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/entities/site/{site_id}/oauth/{provider}/initiate",
		Role:    toRead,
		handle:  (*Server).initiateOAuth,
		Operation: &Operation{
			ID:      "initiate_site_oauth_entities_site__site_id__oauth__provider__initiate_get",
			Tag:     "sites",
			Summary: "Begin linking a manufacturer's cloud",
			Answer: Answer{
				Text: "Where to send the user.",
				Body: sample[wire.OAuthInitiateResponse](
					`{"authorization_url": "https://login.example/authorize?client_id=flexd&state=…"}`,
				),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{Method: "GET", Pattern: oauthReturn, Role: Public, Unlisted: true, handle: (*Server).oauthCallback},
	{
		Method:  "GET",
		Pattern: "/entities/site/{site_id}/flex-events",
		Role:    toRead,
		handle:  (*Server).flexEvents,
		Operation: &Operation{
			ID:      "get_site_flex_events_entities_site__site_id__flex_events_get",
			Tag:     "sites",
			Summary: "A site's flex events",
			Answer: Answer{
				Text: "The events.",
				Body: sample[wire.SiteFlexEventsResponse](`{
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"events": [
					{
						"start_at": "2026-01-15T17:00:00Z",
						"end_at": "2026-01-15T17:30:00Z",
						"estimated_gross_revenue_gbp": 0.62,
						"final_gross_revenue_gbp": 0.59
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}/live",
		Role:      toRead,
		Component: true,
		No400:     true,
		handle:    (*Server).liveSite,
		Operation: &Operation{
			ID: "get_site_live", Tag: "sites", Addition: true,
			Summary: "Follow a site",
			Text: "The site's assets as they are: what is plugged in, which schedule is in force, whether the client has taken it. " +
				"With `Accept: text/event-stream` a stream of server-sent events: `site` with the same object at once, and again each time that " +
				"something of it changed. A line of comment comes every 15 seconds. The stream ends after 15 minutes, when its token ends, and when flexd stops: ask again, " +
				"and the first event says how things are, so that nothing needs to be made up. A site is followed 10 times at once, " +
				"an organisation follows 2,000.",
			Answer: Answer{
				Text: "The site.",
				Body: sample[wire.SiteNow](`{
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"as_of": "2026-01-15T22:00:10Z",
					"assets": [
						{
							"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
							"external_id": "CP-2041",
							"type": "charger",
							"plugged_in": true,
							"session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
							"plugged_in_at": "2026-01-15T18:04:00Z",
							"ready_by": "2026-01-16T07:00:00Z",
							"event_id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
							"generation": 3,
							"accepted_generation": 3
						}
					]
				}`),
				Events: "retry: 2000\n\nevent: site\nid: 1\ndata: {\"site_id\":\"a1b2c3d4-e5f6-7890-abcd-ef1234567890\",\"as_of\":\"2026-01-15T22:00:10Z\",\"assets\":[]}\n\n",
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}/price-curve",
		Role:      toRead,
		Component: true,
		handle:    (*Server).sitePriceCurve,
		Operation: &Operation{
			ID:      "get_price_curve_entities_site__site_id__price_curve_get",
			Tag:     "sites",
			Summary: "Half-hourly prices for a site",
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
		Pattern: "/entities/site/{site_id}/forecast",
		Role:    toRead,
		handle:  (*Server).siteForecast,
		Operation: &Operation{
			ID: "get_forecast", Tag: "sites", Addition: true,
			Summary: "A home's forecast and what came of it",
			Text: "What the home was expected to draw and its roof to give when the day began, half-hour by " +
				"half-hour, and what was metered since: from sixty days ago to tomorrow. The load is what the " +
				"home draws, whatever its battery takes and its roof gives.",
			Answer: Answer{
				Text: "The day.",
				Body: sample[wire.ForecastResponse](`{
				"day": "2026-01-15",
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T12:00:00Z",
						"load_forecast_kwh": 0.21,
						"load_kwh": 0.19,
						"solar_forecast_kwh": 0.8,
						"solar_kwh": null,
						"solar_origin": "given"
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/entities/site/{site_id}/solar-forecast",
		Role:    toRead,
		handle:  (*Server).solarForecast,
		Operation: &Operation{
			ID: "get_solar_forecast", Tag: "sites", Addition: true,
			Summary: "What a site's roof is expected to give",
			Text: "From the running half-hour to the end of tomorrow in London, as the site's batteries are " +
				"planned on it: as it was given, else guessed from what the roof gave before.",
			Answer: Answer{
				Text: "The forecast, each half-hour with its origin.",
				Body: sample[wire.SolarForecastResponse](sampleSolarForecastResponse),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:     "PUT",
		Pattern:    "/entities/site/{site_id}/solar-forecast",
		Role:       toWrite,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).setSolarForecast,
		Operation: &Operation{
			ID: "put_solar_forecast", Tag: "sites", Addition: true,
			Summary: "Say what a site's roof will give",
			Text: "In the place of what was said before, and of the forecast that is made from readings. A " +
				"half-hour of which nothing is said keeps the latter; an empty list takes everything back. The " +
				"site's batteries are planned again at once. From a day ago to fourteen days ahead.",
			Body: sample[wire.SolarForecast](`{
				"source": "weather.example",
				"half_hours": [{"start_timestamp": "2026-01-15T12:00:00Z", "energy_kwh": 0.8}]
			}`),
			Answer: Answer{
				Text: "The forecast as it stands.",
				Body: sample[wire.SolarForecastResponse](sampleSolarForecastResponse),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
