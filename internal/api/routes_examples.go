package api

import (
	"flexd/internal/wire"
)

// examplesRoutes are the operations of examples.
var examplesRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/examples/dispatch-event",
		Role:    Anyone,
		handle:  (*Server).exampleDispatchEvent,
		Operation: &Operation{
			ID:      "get_example_dispatch_event_examples_dispatch_event_get",
			Tag:     "examples",
			Summary: "A dispatch event as flexd sends it",
			Answer: Answer{
				Text: "The example.",
				Body: sample[wire.DispatchEvent](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"event_id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
				"issued_timestamp": "2026-01-15T10:10:00Z",
				"event_timestamp": "2026-01-15T10:10:00Z",
				"market_id": "dno",
				"level_kw": -2.0,
				"from_time": "2026-01-15T17:00:00Z",
				"to_time": "2026-01-15T17:30:00Z",
				"update_status_callback": "https://flexd.example/entities/asset/b2c3d4e5-f6a7-8901-bcde-f23456789012/callback/0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33"
			}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/examples/ocpp-charging-profile",
		Role:    Anyone,
		handle:  (*Server).exampleChargingProfile,
		Operation: &Operation{
			ID:      "get_example_ocpp_charging_profile_examples_ocpp_charging_profile_get",
			Tag:     "examples",
			Summary: "A charging profile as flexd sends it",
			Answer: Answer{
				Text: "The example.",
				Body: sample[wire.SetChargingProfileRequest](`{
				"connectorId": 1,
				"csChargingProfiles": {
					"chargingProfileId": 1841879382,
					"stackLevel": 1100,
					"chargingProfilePurpose": "TxProfile",
					"chargingProfileKind": "Absolute",
					"chargingSchedule": {
						"duration": 32400,
						"startSchedule": "2026-04-14T22:00:00Z",
						"chargingRateUnit": "W",
						"chargingSchedulePeriod": [
							{
								"startPeriod": 0,
								"limit": 0.0,
								"numberPhases": 1
							},
							{
								"startPeriod": 5400,
								"limit": 99999.0,
								"numberPhases": 1
							},
							{
								"startPeriod": 27000,
								"limit": 0.0,
								"numberPhases": 1
							}
						],
						"minChargingRate": 0.0
					}
				}
			}`),
			},
		},
	},
}
