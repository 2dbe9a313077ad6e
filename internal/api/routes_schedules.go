package api

import (
	"flexd/internal/wire"
)

// schedulesRoutes are the operations of schedules.
var schedulesRoutes = []Route{
	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/battery-schedule",
		Role:      toRead,
		Component: true,
		handle:    (*Server).batterySchedule,
		Operation: &Operation{
			ID:      "get_battery_schedule_entities_asset__asset_id__battery_schedule_get",
			Tag:     "assets",
			Summary: "A battery's schedule",
			Answer: Answer{
				Text: "The schedule in force.",
				Body: sample[wire.BatteryScheduleResponse](`{
				"schedule_steps": [
					{
						"start_timestamp": "2026-01-15T00:00:00Z",
						"end_timestamp": "2026-01-15T05:30:00Z",
						"action": "charge_max",
						"allow_deviation": false
					}
				],
				"schedule_last_updated": "2026-01-14T14:00:03Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/todays-dispatch-schedule",
		Role:      toRead,
		Component: true,
		handle:    (*Server).dispatchPlan,
		Operation: &Operation{
			ID: "get_todays_dispatch_schedule", Tag: "assets",
			Summary: "A battery's plan of today",
			Text: "Made in production alone; elsewhere, and for a battery without a plan, the list is empty. Any " +
				"other asset is 404.",
			Answer: Answer{
				Text: "The plan, in UK time.",
				Body: sample[wire.PlainDispatchScheduleResponse](`{
				"periods": [
					{
						"start_timestamp": "2026-07-01T00:00:00+01:00",
						"end_timestamp": "2026-07-01T05:30:00+01:00",
						"action": "CHARGE"
					},
					{
						"start_timestamp": "2026-07-01T05:30:00+01:00",
						"end_timestamp": "2026-07-02T00:00:00+01:00",
						"action": "SELF_USE"
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/schedule",
		Role:      toRead,
		Component: true,
		handle:    (*Server).schedule,
		Operation: &Operation{
			ID: "get_schedule", Tag: "schedules", Addition: true,
			Summary: "The schedule in force",
			Answer: Answer{
				Text: "The schedule.",
				Body: sample[wire.ScheduleResponse](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
				"event_id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
				"generation": 3,
				"accepted_generation": 3,
				"made_at": "2026-01-15T22:00:00Z",
				"ready_by": "2026-01-16T07:00:00Z",
				"periods": [
					{
						"start_timestamp": "2026-01-15T22:00:00Z",
						"end_timestamp": "2026-01-15T23:30:00Z",
						"limit_w": 0
					},
					{
						"start_timestamp": "2026-01-15T23:30:00Z",
						"end_timestamp": "2026-01-16T05:30:00Z",
						"limit_w": 99999
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/schedule/explanation",
		Role:      toRead,
		Component: true,
		handle:    (*Server).scheduleExplanation,
		Operation: &Operation{
			ID: "explain_schedule", Tag: "schedules", Addition: true,
			Summary: "Why the schedule is as it is",
			Text:    "As prose for Accept: text/plain.",
			Answer: Answer{
				Text: "The reason for every period, and what went into the plan.",
				Body: sample[wire.ScheduleExplanation](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"generation": 3,
				"accepted_generation": 3,
				"made_at": "2026-01-15T22:00:00Z",
				"summary": "30 kWh are needed by 07:00. All off-peak time is open, and that is enough.",
				"plan": {
					"energy_kwh": 44.4,
					"shortfall_kwh": 0,
					"cost_pence": 271.5,
					"lower_bound_pence": 271.5
				},
				"periods": [
					{
						"start_timestamp": "2026-01-15T23:30:00Z",
						"end_timestamp": "2026-01-16T00:00:00Z",
						"energy_kwh": 3.7,
						"price_gbp_per_mwh": 61.2,
						"off_peak": true,
						"reason": "off-peak time is always open in this mode"
					}
				],
				"inputs": [
					{"name": "energy_required_kwh", "value": "30", "origin": "event"},
					{"name": "power_kw", "value": "7.4", "origin": "asset"}
				],
				"binding_limits": [],
				"binding_caps": []
			}`),
				Plain: "Schedule 3 of asset b2c3d4e5-f6a7-8901-bcde-f23456789012, made Thu 22:00:00 because of: plug-in\n",
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/charging-rate",
		Role:      toRead,
		Component: true,
		handle:    (*Server).chargingRate,
		Operation: &Operation{
			ID: "get_charging_rate", Tag: "schedules", Addition: true,
			Summary: "The power that an asset really draws",
			Text: "As its own meter shows, in half-hours in which it was allowed full power. Plans are made with " +
				"it where it is below nominal.",
			Answer: Answer{
				Text: "What it is planned with, and what each session taught.",
				Body: sample[wire.ChargingRateResponse](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"nominal_kw": 7.4,
				"planned_kw": 3.6,
				"origin": "readings",
				"summary": "planned with 3.6 kW of 7.4 kW, learned from 9 half-hours since 15 January 2026, certainty medium",
				"half_hours": 9,
				"since": "2026-01-15T00:30:00Z",
				"certainty": "medium",
				"start_delay_minutes": 0,
				"tail_kwh": 0,
				"sessions": [
					{
						"session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
						"start_timestamp": "2026-01-15T00:30:00Z",
						"end_timestamp": "2026-01-15T05:00:00Z",
						"half_hours": 9,
						"power_kw": 3.6
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/heat",
		Role:      toRead,
		Component: true,
		handle:    (*Server).knownHeat,
		Operation: &Operation{
			ID: "get_known_heat", Tag: "schedules", Addition: true,
			Summary: "What was learned of heat",
			Text: "Of a heat pump's building, or of what is drawn from a hot-water tank: learned once a day from " +
				"readings, or assumed while there are none. Plans are made with it.",
			Answer: Answer{
				Text: "What it is planned with, and how certain that is.",
				Body: sample[wire.KnownHeatResponse](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"summary": "planned with a building that loses 160 W and keeps 7.5 kWh for each degree, of which people and the sun make up for 420 W, learned from 14 days of readings since 2026-01-02, certainty high; a forecast of three hours was off by 0.3 degrees",
				"learned_days": 14,
				"since": "2026-01-02",
				"certainty": "high",
				"building": {
					"loss_w_per_k": 160,
					"capacity_kwh_per_k": 7.5,
					"gain_w": 420,
					"forecast_error_c": 0.3
				}
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/sessions",
		Role:      toRead,
		Component: true,
		handle:    (*Server).sessions,
		Operation: &Operation{
			ID: "get_sessions", Tag: "schedules", Addition: true,
			Summary: "An asset's plug sessions",
			Text:    "Newest first.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.SessionResponsePage](`{
				"sessions": [
					{
						"session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"plugged_in_at": "2026-01-15T22:00:00Z",
						"ready_by": "2026-01-16T07:00:00Z",
						"charging_rate_kw": 7.4
					}
				],
				"total_num_sessions": 1,
				"total_num_pages": 1,
				"page_number": 1
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:     "POST",
		Pattern:    "/what-if",
		Role:       toRead,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).whatIf,
		Operation: &Operation{
			ID: "compute_what_if", Tag: "schedules", Addition: true,
			Summary: "What would be planned",
			Text:    "With another intent, tariff, power or other prices. Stores and sends nothing.",
			Body: sample[wire.WhatIfRequest](`{
				"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
				"intent": {"energy_required_kwh": 10, "charging_mode": "minimise_charging_time"}
			}`),
			Answer: Answer{
				Text: "Both plans, for each asset.",
				Body: sample[wire.WhatIfResponse](`{
				"results": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"current": {
							"energy_kwh": 44.4,
							"shortfall_kwh": 0,
							"cost_pence": 271.5,
							"lower_bound_pence": 271.5
						},
						"proposed": {"energy_kwh": 10, "shortfall_kwh": 0, "cost_pence": 52.1},
						"cost_difference_pence": -219.4,
						"energy_difference_kwh": -34.4,
						"replaces_schedule": true,
						"periods": [
							{
								"start_timestamp": "2026-01-15T23:30:00Z",
								"end_timestamp": "2026-01-16T00:00:00Z",
								"energy_kwh": 3.7,
								"price_gbp_per_mwh": 61.2,
								"off_peak": true,
								"reason": "off-peak time is always open in this mode"
							}
						]
					}
				]
			}`),
			},
			Problems: []Problem{malformed},
		},
	},
}
