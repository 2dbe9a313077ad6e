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
}
