package api

import (
	"flexd/internal/wire"
)

// gridRoutes are the operations of grid.
var gridRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/grid/envelope",
		Role:    toRead,
		handle:  (*Server).envelope,
		Operation: &Operation{
			ID: "get_envelope", Tag: "grid", Addition: true,
			Summary: "What the plugged-in assets can draw",
			Text: "From now to the end of the 48th half-hour: what the assets that are plugged in draw by plan, " +
				"and the least and the most that they can draw, each car with what it needs by its ready-by. The " +
				"bounds of a window are not the sums of those of its half-hours: with `windows=true` all 1,176 " +
				"windows are given. Caps that assets share are not part of it.",
			Answer: Answer{
				Text: "The envelope.",
				CSV:  true,
				Body: sample[wire.EnvelopeResponse](`{
				"at": "2026-01-15T18:00:00Z",
				"num_controlled": 1,
				"num_uncontrolled": 0,
				"num_short": 0,
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T18:00:00Z",
						"end_timestamp": "2026-01-15T18:30:00Z",
						"planned_kwh": 0,
						"least_kwh": 0,
						"most_kwh": 3.7
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/grid/ahead",
		Role:    toRead,
		handle:  (*Server).ahead,
		Operation: &Operation{
			ID: "get_ahead", Tag: "grid", Addition: true,
			Summary: "What the fleet can do tomorrow",
			Text: "Learned from the cars that came before: what the fleet will draw on a day, could leave out of " +
				"it with every need met, and could draw more, **at least**, with confidences from 50 to 99 %. " +
				"What can be left out or drawn more has home batteries in it, as they were planned on past days. " +
				"`reliability` says how often what would have been said on past days came, each from the days " +
				"before it alone, and how much of what came was said. A forecast knows whole days up to two " +
				"before the day that it is for. With fewer than 28 days there are no windows. Of a day that is " +
				"over it says what came too.",
			Answer: Answer{
				Text: "The forecast.",
				CSV:  true,
				Body: sample[wire.AheadResponse](`{
				"at": "2026-01-15T18:00:00Z",
				"day": "2026-01-16",
				"num_days": 180,
				"num_stays": 17450,
				"num_uncontrolled": 12,
				"confidences": [50, 80, 90, 95, 99],
				"reliability": [
					{
						"kind": "turn_down",
						"num_days": 90,
						"kept": [0.501, 0.802, 0.905, 0.951, 0.989],
						"volume": [0.979, 0.716, 0.588, 0.483, 0.318]
					}
				],
				"windows": [
					{
						"start_timestamp": "2026-01-16T00:00:00Z",
						"end_timestamp": "2026-01-16T00:30:00Z",
						"load_kw": [412.1, 377, 351.2, 330.9, 288],
						"turn_down_kw": [390.2, 351, 327.5, 301, 260.4],
						"turn_up_kw": [92, 71.3, 60.1, 48.8, 31.2]
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:     "POST",
		Pattern:    "/grid/profile",
		Role:       toRead,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).profile,
		Operation: &Operation{
			ID: "ask_profile", Tag: "grid", Addition: true,
			Summary: "Can the plugged-in assets draw this?",
			Text: "Exactly these energies in these half-hours, with every need met; other half-hours are free. The " +
				"answer is exact both ways: yes, with `parts=true` with each asset's part, or no, with " +
				"half-hours that prove it. Nothing is stored and nothing is sent.",
			Body: sample[wire.ProfileRequest](
				`{"half_hours": [{"start_timestamp": "2026-01-15T18:00:00Z", "energy_kwh": 0}]}`,
			),
			Answer: Answer{
				Text: "The answer.",
				Body: sample[wire.ProfileResponse](`{
				"at": "2026-01-15T17:40:00Z",
				"num_controlled": 1,
				"num_uncontrolled": 0,
				"follows": true,
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T18:00:00Z",
						"end_timestamp": "2026-01-15T18:30:00Z",
						"planned_kwh": 0,
						"least_kwh": 0,
						"most_kwh": 3.7
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
