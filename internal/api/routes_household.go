package api

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// householdRoutes are the operations for what a household runs itself.
var householdRoutes = []Route{
	{
		Method:    "GET",
		Pattern:   "/vpp/home-assistant/event",
		Role:      Anyone,
		Component: true,
		handle:    (*Server).householdEvent,
		Operation: &Operation{
			ID: "get_household_event", Tag: "sites", Addition: true,
			Summary: "What goes on at a site, or comes next",
			Text: "For Home Assistant and programs that plan home batteries, which ask every ten minutes or so with the " +
				"household's token. It is the time in which the site's cars charge or its batteries charge or discharge by the " +
				"plans in force: the one that goes on, or else the next; null if nothing is planned. An organisation's token " +
				"needs the role entity_read, and a site_id.",
			Answer: Answer{
				Text: "The time, or null.",
				Null: true,
				Body: sample[wire.HouseholdEvent](`{
				"start_time": "2026-01-15T23:30:00Z",
				"end_time": "2026-01-16T05:30:00Z",
				"import_export": "import",
				"updated_at": "2026-01-15T22:00:00Z"
			}`),
			},
			Problems: []Problem{forbidden, notFound},
		},
	},

	{
		Method:     "POST",
		Pattern:    "/entities/site/{site_id}/home-assistant-token",
		Role:       flex.Components,
		Repeatable: true,
		NewToken:   true,
		handle:     (*Server).issueHouseholdToken,
		Operation: &Operation{
			ID: "create_household_token", Tag: "sites", Addition: true,
			Summary: "Get a household's token",
			Text: "For one who lives at the site to write into a program of theirs: it reads GET /vpp/home-assistant/event and " +
				"nothing else. There is one for each site; a new one ends the one before. It lives for ten years, and no longer " +
				"than the credential that asked for it and the site.",
			Answer: Answer{
				Text: "The token.",
				Body: sample[wire.HouseholdToken](`{
				"access_token": "flexd_8Kx…",
				"token_type": "bearer",
				"expires_at": "2036-01-13T10:00:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/entities/site/{site_id}/home-assistant-token",
		Role:    flex.Components,
		handle:  (*Server).endHouseholdToken,
		Operation: &Operation{
			ID: "delete_household_token", Tag: "sites", Addition: true,
			Summary:  "End a household's token",
			Answer:   Answer{Text: "The site has none.", Empty: true},
			Problems: []Problem{notFound},
		},
	},
}
