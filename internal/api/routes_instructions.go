package api

import (
	"flexd/internal/wire"
)

// instructionsRoutes are the operations of instructions.
var instructionsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/grid/instructions",
		Role:    toRead,
		handle:  (*Server).instructions,
		Operation: &Operation{
			ID: "get_instructions", Tag: "grid", Addition: true,
			Summary: "Instructions",
			Text:    "The newest first.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.InstructionPage](`{
				"num_total": 1,
				"instructions": [
					{
						"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
						"state": "ordered",
						"change_kw": -100,
						"start_timestamp": "2026-01-15T17:30:00Z",
						"end_timestamp": "2026-01-15T19:00:00Z",
						"service": "dno",
						"price_gbp_per_mwh": 0,
						"reason": "evening peak",
						"unfair": false,
						"who": "credential acme",
						"made_at": "2026-01-15T17:00:00Z"
					}
				]
			}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/instructions",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).instruct,
		Operation: &Operation{
			ID: "send_instruction", Tag: "grid", Addition: true,
			Summary: "Have a part of the fleet draw less or more",
			Text: "Between two whole minutes: a change against the plan, negative to draw less, or a limit. Who is " +
				"called is chosen by least cost, who was called less often first; every need is kept as far as " +
				"without. With `dry_run=true` it is said what it would do, and nothing is kept or sent. Who " +
				"sends one is kept in the audit log.",
			Body: sample[wire.InstructionRequest](`{
				"change_kw": -100,
				"start_timestamp": "2026-01-15T17:30:00Z",
				"end_timestamp": "2026-01-15T19:00:00Z",
				"service": "dno",
				"reason": "evening peak"
			}`),
			Answer: Answer{
				Text: "What it does, or would do.",
				Body: sample[wire.InstructionPreview](`{
				"instruction": {
					"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
					"state": "ordered",
					"change_kw": -100,
					"start_timestamp": "2026-01-15T17:30:00Z",
					"end_timestamp": "2026-01-15T19:00:00Z",
					"service": "dno",
					"price_gbp_per_mwh": 0,
					"reason": "evening peak",
					"unfair": false,
					"who": "credential acme",
					"made_at": "2026-01-15T17:00:00Z"
				},
				"at": "2026-01-15T17:00:00Z",
				"cost_pence": 12.5,
				"reached": 0,
				"why": "no asset can bring anything",
				"rebound_kw": 0,
				"rebound_later_kw": 0,
				"num_called": 0,
				"num_callable": 0,
				"num_needed": 0,
				"num_idle": 0,
				"num_busy": 0,
				"num_spent": 0,
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T17:30:00Z",
						"end_timestamp": "2026-01-15T18:00:00Z",
						"planned_kwh": 0,
						"asked_kwh": 50,
						"counted_kwh": 0,
						"given_kwh": 0,
						"short_kwh": 50
					}
				],
				"assets": []
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/instructions/stop",
		Role:    toWrite,
		handle:  (*Server).stopInstructions,
		Operation: &Operation{
			ID: "stop_instructions", Tag: "grid", Addition: true,
			Summary: "Stop all instructions",
			Text:    "Who is called returns to the plan without, at once. To stop again changes nothing.",
			Answer: Answer{
				Text: "How many were active.",
				Body: sample[wire.InstructionsStopped](`{"num_stopped": 1}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/grid/instructions/{id}",
		Role:    toRead,
		handle:  (*Server).instruction,
		Operation: &Operation{
			ID: "get_instruction", Tag: "grid", Addition: true,
			Summary: "An instruction's report",
			Text: "What was asked for, what the schedules that stood and those that were sent draw, and what was " +
				"metered, in each half-hour of it and of the hour after, and if asked for in each minute: there metered are " +
				"chargers' registers, where they were read at most ten minutes apart, and of batteries and heaters by readings of their power. Minutes of more than a million " +
				"are refused.",
			Answer: Answer{
				Text: "The report.",
				CSV:  true,
				Body: sample[wire.InstructionReport](`{
				"instruction": {
					"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
					"state": "ordered",
					"change_kw": -100,
					"start_timestamp": "2026-01-15T17:30:00Z",
					"end_timestamp": "2026-01-15T19:00:00Z",
					"service": "dno",
					"price_gbp_per_mwh": 0,
					"reason": "evening peak",
					"unfair": false,
					"who": "credential acme",
					"made_at": "2026-01-15T17:00:00Z"
				},
				"at": "2026-01-15T17:00:00Z",
				"cost_pence": 12.5,
				"num_called": 14,
				"num_spent": 0,
				"half_hours": [
					{
						"start_timestamp": "2026-01-15T17:30:00Z",
						"end_timestamp": "2026-01-15T18:00:00Z",
						"asked_kwh": -50,
						"baseline_kwh": 51.8,
						"expected_kwh": 0,
						"short_kwh": 0,
						"num_metered": 0
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/instructions/{id}/stop",
		Role:    toWrite,
		handle:  (*Server).stopInstruction,
		Operation: &Operation{
			ID: "stop_instruction", Tag: "grid", Addition: true,
			Summary: "Stop an instruction",
			Text: "Who is called returns to the plan without, at once. To stop one again, or one that is over, " +
				"changes nothing.",
			Answer: Answer{
				Text: "The instruction as it is now.",
				Body: sample[wire.Instruction](`{
				"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
				"state": "ordered",
				"change_kw": -100,
				"start_timestamp": "2026-01-15T17:30:00Z",
				"end_timestamp": "2026-01-15T19:00:00Z",
				"service": "dno",
				"price_gbp_per_mwh": 0,
				"reason": "evening peak",
				"unfair": false,
				"who": "credential acme",
				"made_at": "2026-01-15T17:00:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
