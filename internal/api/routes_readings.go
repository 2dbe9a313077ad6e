package api

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// readingsRoutes are the operations of readings.
var readingsRoutes = []Route{
	{
		Method:     "POST",
		Pattern:    "/data/readings",
		Role:       flex.MetricsWrite,
		Limit:      wire.MaxReadingsBody,
		Repeatable: true,
		handle:     (*Server).readings,
		Operation: &Operation{
			ID: "post_readings_data_readings_post", Tag: "data",
			Summary: "Send readings",
			Text: "One verdict for each, in the order in which they came; one bad reading does not refuse the " +
				"others. The same reading again changes nothing; another value for it is a correction. At most " +
				"1,000,000, in 256 MiB, gzip allowed.",
			Body: sample[wire.ReadingsDataPoints](`{
				"readings": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"start_timestamp": "2026-01-15T10:00:00Z",
						"end_timestamp": "2026-01-15T10:30:00Z",
						"value": 3.7,
						"label": "charger_consumption_energy_kwh"
					}
				]
			}`),
			Answer: Answer{
				Text: "The verdicts.",
				Body: sample[wire.ReadingsResponse](`{
				"responses": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"start_timestamp": "2026-01-15T10:00:00Z",
						"end_timestamp": "2026-01-15T10:30:00Z",
						"label": "charger_consumption_energy_kwh",
						"accepted": true
					}
				]
			}`),
			},
			Problems: []Problem{malformed},
		},
	},

	{
		Method:  "GET",
		Pattern: "/data/readings/held",
		Role:    toRead,
		handle:  (*Server).heldReadings,
		Operation: &Operation{
			ID: "get_held_readings", Tag: "data", Addition: true,
			Summary: "Readings that are held back",
			Text: "What no device or connection can have measured, the newest first. It counts nowhere until it is " +
				"released. What was decided on stays in the list until readings of its age are forgotten.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.HeldReadingPage](`{
				"num_total": 1,
				"readings": [
					{
						"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f44",
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"label": "charger_consumption_energy_kwh",
						"start_timestamp": "2026-01-14T10:00:00Z",
						"end_timestamp": "2026-01-14T10:30:00Z",
						"value": 510,
						"reason": "beyond_power",
						"detail": "510 kWh in 30 minutes are more than 7.4 kW can carry",
						"held_at": "2026-01-14T10:31:00Z",
						"state": "waiting"
					}
				]
			}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/data/readings/held/{id}/release",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).releaseHeld,
		Operation: &Operation{
			ID: "release_held_reading", Tag: "data", Addition: true,
			Summary: "Have a reading count that is held back",
			Text: "As a correction where there is another for its time. Each is decided once (409), and who did " +
				"so, and why, is kept in the audit log. A register that is lower than before started again with it; " +
				"no difference is taken across that place.",
			Body: sample[wire.HeldReleaseRequest](
				`{"reason": "The installer read the meter.", "meter_replaced": false}`,
			),
			Answer: Answer{
				Text: "The reading, which counts.",
				Body: sample[wire.HeldReading](`{
				"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f44",
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"label": "charger_consumption_energy_kwh",
				"start_timestamp": "2026-01-14T10:00:00Z",
				"end_timestamp": "2026-01-14T10:30:00Z",
				"value": 510,
				"reason": "beyond_power",
				"detail": "510 kWh in 30 minutes are more than 7.4 kW can carry",
				"held_at": "2026-01-14T10:31:00Z",
				"state": "released",
				"decided_at": "2026-01-15T09:00:00Z"
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/data/gaps",
		Role:    toRead,
		handle:  (*Server).gaps,
		Operation: &Operation{
			ID: "get_gaps", Tag: "data", Addition: true,
			Summary: "Readings that are missing",
			Text:    "Of a site, by asset, label and day: at most 62 days.",
			Answer: Answer{
				Text: "The gaps.",
				Body: sample[wire.GapsResponse](`{
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"gaps": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"label": "charger_consumption_energy_kwh",
						"day": "2026-01-14",
						"num_expected": 48,
						"num_missing": 2,
						"num_held_back": 1,
						"first_missing": "2026-01-14T10:00:00Z",
						"beyond_rating": [
							{
								"start_timestamp": "2026-01-14T18:30:00Z",
								"label": "charger_consumption_energy_kwh",
								"energy_kwh": 21.5,
								"limit_kwh": 4.07
							}
						]
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
