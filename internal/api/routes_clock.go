package api

import (
	"flexd/internal/wire"
)

// clockRoutes are the operations of clock.
var clockRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/sandbox/clock",
		Role:    toRead,
		handle:  (*Server).clock,
		Operation: &Operation{
			ID: "get_clock", Tag: "sandbox", Addition: true,
			Summary: "What time it is for the organisation",
			Text:    "Only in the sandbox; elsewhere 404.",
			Answer: Answer{
				Text: "The time.",
				Body: sample[wire.ClockResponse](`{"now": "2026-01-15T22:00:00Z", "held": true}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/sandbox/clock",
		Role:    toWrite,
		Limit:   mib,
		InParts: true,
		handle:  (*Server).setClock,
		Operation: &Operation{
			ID: "set_clock", Tag: "sandbox", Addition: true,
			Summary: "Turn the clock forward",
			Text: "Answers when all that is due on the way has been done: prices published, plans made, pushes " +
				"sent, settlement run. Only in the sandbox; elsewhere 404.",
			Body: sample[wire.ClockRequest](`{"advance": "PT8H"}`),
			Answer: Answer{
				Text: "The time now.",
				Body: sample[wire.ClockResponse](`{"now": "2026-01-16T06:00:00Z", "held": true}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
