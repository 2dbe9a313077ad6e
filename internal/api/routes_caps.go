package api

import (
	"flexd/internal/wire"
)

// sampleCaps is one as several operations show it.
const sampleCaps = `{
	"fleet": {"cap_kw": 1000, "starts_per_minute": 60},
	"groups": [
		{"name": "feeder 7", "parent": "substation 2", "cap_kw": 500, "site_ids": ["a1b2c3d4-e5f6-7890-abcd-ef1234567890"]},
		{"name": "substation 2", "cap_kw": 900, "site_ids": []}
	],
	"position": [
		{
			"start_timestamp": "2026-01-15T18:00:00Z",
			"energy_kwh": 120,
			"buy_price_gbp_per_mwh": 95,
			"sell_price_gbp_per_mwh": 60
		}
	]
}`

// capsRoutes are the operations of caps.
var capsRoutes = []Route{
	{
		Method: "GET", Pattern: "/caps", Role: toRead, handle: (*Server).caps,
		Operation: &Operation{
			ID: "get_caps", Tag: "caps", Addition: true,
			Summary: "Read the caps",
			Answer: Answer{
				Text: "The caps, groups by name.",
				Body: sample[wire.Caps](sampleCaps),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "PUT",
		Pattern: "/caps",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).setCaps,
		Operation: &Operation{
			ID: "put_caps", Tag: "caps", Addition: true,
			Summary: "Set the caps",
			Text: "In the place of those that stand: what is not given is not bound. The fleet is planned under " +
				"them at once. A site is bound by the cap of its group, of each group that this one lies in, and of the fleet. No schedule draws more than a cap; a need that does not fit is short, and the " +
				"schedule's explanation says by which cap. Charge-now, and assets that are not under control, " +
				"count against a cap and are not held back by it.",
			Body: sample[wire.Caps](sampleCaps),
			Answer: Answer{
				Text: "The caps as they stand.",
				Body: sample[wire.Caps](sampleCaps),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/caps",
		Role:    toWrite,
		handle:  (*Server).clearCaps,
		Operation: &Operation{
			ID: "delete_caps", Tag: "caps", Addition: true,
			Summary:  "Take the caps away",
			Answer:   Answer{Text: "Nothing is bound.", Empty: true},
			Problems: []Problem{notFound},
		},
	},
}
