package api

import (
	"flexd/internal/wire"
)

// operationsRoutes are the operations of operations.
var operationsRoutes = []Route{
	{
		Method: "GET", Pattern: "/operations/exceptions", Role: toRead, handle: (*Server).exceptions,
		Operation: &Operation{
			ID: "list_exceptions", Tag: "operations", Addition: true,
			Summary: "What needs looking at",
			Text: "The same list as in the console, in flexd doctor and in the metrics. Empty means that nothing " +
				"is known to be wrong.",
			Answer: Answer{Text: "The exceptions, the gravest kind first.", Body: sample[wire.ExceptionsResponse](`{
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
			}`)},
		},
	},

	{
		Method: "GET", Pattern: "/operations/alerts", Role: toRead, handle: (*Server).alerts,
		Operation: &Operation{
			ID: "list_alerts", Tag: "operations", Addition: true,
			Summary: "Exceptions that an operator was, or would be, woken for",
			Text: "Of the caller's organisation alone, the newest first. The operator's rules say which exceptions " +
				"become alerts, and after how long. One that has ended is kept for 90 days.",
			Answer: Answer{Text: "A page of alerts.", Body: sample[wire.AlertListResponse](`{
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
			}`)},
		},
	},
}
