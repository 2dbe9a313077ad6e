package api

import (
	"flexd/internal/wire"
)

// operationsRoutes are the operations of operations.
var operationsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/operations/exceptions",
		Role:    toRead,
		handle:  (*Server).exceptions,
		Operation: &Operation{
			ID: "list_exceptions", Tag: "operations", Addition: true,
			Summary: "What needs looking at",
			Text: "The same list as in the console, in flexd doctor and in the metrics. Empty means that nothing " +
				"is known to be wrong of the kinds that could be looked for.",
			Answer: Answer{
				Text: "The exceptions, the gravest kind first.",
				Body: sample[wire.ExceptionsResponse](`{
				"exceptions": [
					{
						"kind": "refused",
						"level": "critical",
						"count": 1,
						"title": "1 asset plugged in whose schedule the client refused",
						"text": "They are counted as planned and are not controlled. It answered 404. Mend the client's endpoint, then send them again.",
						"assets": [
							{
								"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
								"external_id": "charger-17"
							}
						]
					}
				]
			}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/operations/alerts",
		Role:    toRead,
		handle:  (*Server).alerts,
		Operation: &Operation{
			ID: "list_alerts", Tag: "operations", Addition: true,
			Summary: "Exceptions that an operator was, or would be, woken for",
			Text: "Of the caller's organisation alone, the newest first. The operator's rules say which exceptions " +
				"become alerts, and after how long. One that has ended is kept for 90 days.",
			Answer: Answer{
				Text: "A page of alerts.",
				Body: sample[wire.AlertListResponse](`{
				"alerts": [
					{
						"id": "019b5a3c-0000-7000-8000-000000000001",
						"kind": "refused",
						"level": "critical",
						"count": 1,
						"title": "1 asset plugged in whose schedule the client refused",
						"text": "They are counted as planned and are not controlled.",
						"since_at": "2026-01-16T18:00:00Z",
						"fired_at": "2026-01-16T18:05:00Z"
					}
				]
			}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/operations/alerts/{id}/acknowledge",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).acknowledgeAlert,
		Operation: &Operation{
			ID: "acknowledge_alert", Tag: "operations", Addition: true,
			Summary: "Say that somebody looks after an alert",
			Text: "As an operator does in the console. Only one of the caller's organisation that fires; who did it " +
				"is kept in the audit log.",
			Body: sample[wire.AlertAcknowledgement](`{"note": "the supplier is called"}`),
			Answer: Answer{
				Text: "The alert as it is now.",
				Body: sample[wire.Alert](`{
				"id": "019b5a3c-0000-7000-8000-000000000001",
				"kind": "refused",
				"level": "critical",
				"count": 1,
				"title": "1 asset plugged in whose schedule the client refused",
				"text": "They are counted as planned and are not controlled.",
				"since_at": "2026-01-16T18:00:00Z",
				"fired_at": "2026-01-16T18:05:00Z",
				"acknowledged_at": "2026-01-16T18:09:00Z"
			}`),
			},
			Problems: []Problem{notFound, malformed},
		},
	},

	{
		Method:  "POST",
		Pattern: "/operations/alerts/{id}/snooze",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).snoozeAlert,
		Operation: &Operation{
			ID: "snooze_alert", Tag: "operations", Addition: true,
			Summary: "Have an alert rest",
			Text: "For a minute to 30 days; it is sent again after that if it still fires. The note says to who " +
				"comes next why it is quiet.",
			Body: sample[wire.AlertSnooze](`{"minutes": 120, "note": "the supplier mends it tonight"}`),
			Answer: Answer{
				Text: "The alert as it is now.",
				Body: sample[wire.Alert](`{
				"id": "019b5a3c-0000-7000-8000-000000000001",
				"kind": "refused",
				"level": "critical",
				"count": 1,
				"title": "1 asset plugged in whose schedule the client refused",
				"text": "They are counted as planned and are not controlled.",
				"since_at": "2026-01-16T18:00:00Z",
				"fired_at": "2026-01-16T18:05:00Z",
				"acknowledged_at": "2026-01-16T18:09:00Z",
				"snoozed_until": "2026-01-16T20:09:00Z"
			}`),
			},
			Problems: []Problem{notFound, malformed},
		},
	},

	{
		Method:  "GET",
		Pattern: "/operations/fleet",
		Role:    toRead,
		handle:  (*Server).fleetView,
		Operation: &Operation{
			ID: "get_fleet_view", Tag: "operations", Addition: true,
			Summary: "The fleet as it is now",
			Text: "What is plugged in, what it will draw in the next 24 hours and could, and what needs looking at: the " +
				"figures of the console's first page, of the caller's organisation.",
			Answer: Answer{
				Text: "The fleet.",
				Body: sample[wire.FleetView](`{
				"now": "2026-01-15T18:10:00Z",
				"sites": 1,
				"assets": 1,
				"plugged_in": 1,
				"charging": 0,
				"short": 0,
				"unplanned": 0,
				"drawing_kw": 0,
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T18:10:00Z",
						"planned_kw": 0,
						"without_flexd_kw": 7.4,
						"lowest_kw": 0,
						"highest_kw": 7.4,
						"battery_dispatch_kw": -5,
						"battery_kw": -4.2,
						"battery_lowest_kw": -5,
						"battery_highest_kw": 5,
						"heat_kw": 3
					}
				],
				"exceptions": []
			}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/operations/asset/{asset_id}",
		Role:    toRead,
		handle:  (*Server).assetView,
		Operation: &Operation{
			ID: "get_asset_view", Tag: "operations", Addition: true,
			Summary: "An asset, its schedules and why",
			Text: "What the console's page of the asset shows, read at one instant: how it is, the schedules of its last " +
				"session in the time that is asked for, why the chosen one is as it is, and what the asset draws.",
			Answer: Answer{
				Text: "The asset.",
				Body: sample[wire.AssetView](`{
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"external_id": "charger-17",
				"type": "charger",
				"power_kw": 7.4,
				"capacity_kwh": null,
				"phases": 1,
				"model": "Zappi 2.1",
				"firmware": "4.1.2",
				"serial_number": "",
				"created_at": "2026-01-10T09:00:00Z",
				"organisation_id": "0a1b2c3d-4e5f-6789-abcd-ef0123456789",
				"organisation": "Moorland Energy",
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"address": "4 Elm Row",
				"postcode": "EH1 1AA",
				"controlled": true,
				"plugged_in": true,
				"plugged_in_at": "2026-01-15T18:00:00Z",
				"ready_by": "2026-01-16T07:00:00Z",
				"accepted_generation": 1,
				"now": "2026-01-15T18:10:00Z",
				"from": "2026-01-15T17:00:00Z",
				"to": "2026-01-16T08:30:00Z",
				"schedules": [
					{
						"event_id": "019b5a3c-0000-7000-8000-000000000002",
						"generation": 1,
						"made_at": "2026-01-15T18:00:00Z",
						"cause": "plug_in",
						"delivery": "accepted",
						"periods": [
							{
								"start_timestamp": "2026-01-15T18:00:00Z",
								"end_timestamp": "2026-01-16T00:30:00Z",
								"limit_w": 0
							}
						]
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/operations/site/{site_id}",
		Role:    toRead,
		handle:  (*Server).siteView,
		Operation: &Operation{
			ID: "get_site_view", Tag: "operations", Addition: true,
			Summary: "A site, its assets, consents and metering point",
			Text: "What the console's page of the site shows of its record, read at one instant. What readings are missing, its " +
				"eligibility and its statement have operations of their own.",
			Answer: Answer{
				Text: "The site.",
				Body: sample[wire.SiteView](`{
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"organisation_id": "0a1b2c3d-4e5f-6789-abcd-ef0123456789",
				"organisation": "Moorland Energy",
				"address": "4 Elm Row",
				"postcode": "EH1 1AA",
				"email": "driver1@post.example",
				"mpan": "2000000010007",
				"external_user_id": "",
				"created_at": "2026-01-10T09:00:00Z",
				"tariff": {},
				"import_capacity_kw": 23,
				"export_capacity_kw": 3.68,
				"capacity_source": "default",
				"calls_today": 0,
				"calls_this_month": 1,
				"ratings": [],
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-17",
						"type": "charger",
						"power_kw": 7.4,
						"model": "Zappi 2.1"
					}
				],
				"dispatch_methods": ["full_asset_schedule_control"],
				"enrolments": [
					{
						"proposition": "full_asset_schedule_control",
						"state": "enrolled"
					}
				],
				"consents": [],
				"changes": []
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
