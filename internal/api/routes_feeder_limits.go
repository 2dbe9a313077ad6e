package api

import (
	"flexd/internal/wire"
)

// sampleLimits is one as several operations show it.
const sampleLimits = `{
	"limits": [
		{
			"group": "feeder 7",
			"direction": "export",
			"start_timestamp": "2026-01-15T18:00:00Z",
			"end_timestamp": "2026-01-15T20:00:00Z",
			"limit_kw": 20,
			"source": "import",
			"binds": true,
			"is_lowest": true,
			"num_sites": 48
		}
	],
	"links": [
		{
			"group": "feeder 7",
			"fallback_kw": 50,
			"export_fallback_kw": 0,
			"silence_seconds": 900,
			"heard_at": "2026-01-15T18:00:00Z"
		}
	]
}`

// limitsRoutes are the operations of limits of feeders.
var limitsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/grid/limits",
		Role:    toRead,
		handle:  (*Server).feederLimits,
		Operation: &Operation{
			ID: "get_feeder_limits", Tag: "grid", Addition: true,
			Summary: "What limits feeders now and later",
			Text: "What a distribution operator limits constraint groups to, by request, file or OpenADR event, " +
				"beside the caps of the groups, and the fallbacks of links on which nothing was heard for too " +
				"long. With `group` or `site_id`, what binds that group or site. The sites of a group are in `GET /caps`.",
			Answer: Answer{
				Text: "The limits that are not over, and the links.",
				Body: sample[wire.FeederLimits](sampleLimits),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "PUT",
		Pattern: "/grid/limits",
		Role:    toWrite,
		Limit:   2 * mib,
		handle:  (*Server).setFeederLimits,
		Operation: &Operation{
			ID: "put_feeder_limits", Tag: "grid", Addition: true,
			Summary: "Limit feeders",
			Text: "In the place of what was given so before of the groups and directions that are named, from now " +
				"on; what OpenADR events limit stays. It binds at once, and of several the lowest does. An import " +
				"limit is of what cars draw, an export limit of what home batteries give to the grid at " +
				"full power. It is a sign of life of the groups' links. All are taken, or none.",
			Body: sample[wire.FeederLimitsRequest](`{
				"limits": [
					{
						"group": "feeder 7",
						"direction": "export",
						"start_timestamp": "2026-01-15T18:00:00Z",
						"end_timestamp": "2026-01-15T20:00:00Z",
						"limit_kw": 20
					}
				]
			}`),
			Answer: Answer{
				Text: "All limits and links as they stand.",
				Body: sample[wire.FeederLimits](sampleLimits),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/grid/limits",
		Role:    toWrite,
		handle:  (*Server).clearFeederLimits,
		Operation: &Operation{
			ID: "delete_feeder_limits", Tag: "grid", Addition: true,
			Summary: "Take a feeder's limits away",
			Text:    "Those that came by request or file, of both directions, from now on. It is a sign of life of the group's link.",
			Answer: Answer{
				Text:  "The group has none of them any more.",
				Empty: true,
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "PUT",
		Pattern: "/grid/limit-links",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).setLimitLink,
		Operation: &Operation{
			ID: "put_limit_link", Tag: "grid", Addition: true,
			Summary: "Have a fallback bind a feeder when its link is lost",
			Text: "Whenever nothing was heard for so long of whoever limits the group: no limit, no OpenADR event, no " +
				"sign of life. It binds within seconds, beside limits that are still given, until something is " +
				"heard. In the place of the group's link before; it counts as heard now.",
			Body: sample[wire.LimitLinkRequest](
				`{"group": "feeder 7", "fallback_kw": 50, "export_fallback_kw": 0, "silence_seconds": 900}`,
			),
			Answer: Answer{
				Text: "What limits the group and those around it, and their links.",
				Body: sample[wire.FeederLimits](sampleLimits),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/grid/limit-links",
		Role:    toWrite,
		handle:  (*Server).clearLimitLink,
		Operation: &Operation{
			ID: "delete_limit_link", Tag: "grid", Addition: true,
			Summary:  "Have no fallback bind a feeder any more",
			Answer:   Answer{Text: "The group has no link.", Empty: true},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:     "POST",
		Pattern:    "/grid/limit-links/heard",
		Role:       toWrite,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).hearLimitLink,
		Operation: &Operation{
			ID: "hear_limit_link", Tag: "grid", Addition: true,
			Summary:  "A sign of life of whoever limits a feeder",
			Text:     "Although nothing changed: the fallback of the group's link binds no more.",
			Body:     sample[wire.LimitHeardRequest](`{"group": "feeder 7"}`),
			Answer:   Answer{Text: "It was heard.", Empty: true},
			Problems: []Problem{notFound},
		},
	},
}
