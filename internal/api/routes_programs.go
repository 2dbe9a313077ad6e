package api

import (
	"flexd/internal/wire"
)

// sampleProgram is one as several operations show it.
const sampleProgram = `{
	"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f77",
	"name": "Evening peak",
	"binding": {
		"kind": "instruction",
		"service": "dno",
		"price_gbp_per_mwh": 300,
		"simple_kw": [-100, -200],
		"group": "feeder 7",
		"who": "credential acme",
		"made_at": "2026-01-14T18:20:00Z"
	}
}`

// sampleProgramOrder is one as several operations show it.
const sampleProgramOrder = `{
	"event_id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f88",
	"interval": 0,
	"start_timestamp": "2026-01-15T18:00:00Z",
	"end_timestamp": "2026-01-15T19:00:00Z",
	"change_kw": -100,
	"state": "waiting"
}`

// programsRoutes are the operations of OpenADR programs whose events are for the fleet.
var programsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/grid/programs",
		Role:    toRead,
		handle:  (*Server).programs,
		Operation: &Operation{
			ID: "list_programs", Tag: "grid", Addition: true,
			Summary: "OpenADR programs",
			Text: "Those of the organisation's own OpenADR server and those of other parties' servers that it is a VEN of, " +
				"each with the part of the fleet that its events are for.",
			Answer: Answer{
				Text: "All programs.",
				Body: sample[wire.Programs](`{"programs": [` + sampleProgram + `]}`),
			},
		},
	},

	{
		Method:  "PUT",
		Pattern: "/grid/programs/{id}/binding",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).bindProgram,
		Operation: &Operation{
			ID: "bind_program", Tag: "grid", Addition: true,
			Summary: "Have an OpenADR program's events be for the fleet",
			Text: "What they ask for is carried out, now and from now on: as instructions to a part of the fleet, or as " +
				"limits of a constraint group. It replaces how the program was bound; what is asked for " +
				"otherwise then is withdrawn. With `dry_run=true` it only says what that would do.",
			Body: sample[wire.ProgramBindingRequest](
				`{"service": "dno", "price_gbp_per_mwh": 300, "simple_kw": [-100, -200], "group": "feeder 7"}`,
			),
			Answer: Answer{
				Text: "What its events ask for by the change, and do not any more.",
				Body: sample[wire.ProgramBound](
					`{"program": ` + sampleProgram + `, "asked": [` + sampleProgramOrder + `], "withdrawn": [], "num_stays": 0}`,
				),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/grid/programs/{id}/binding",
		Role:    toWrite,
		handle:  (*Server).unbindProgram,
		Operation: &Operation{
			ID: "unbind_program", Tag: "grid", Addition: true,
			Summary: "Have an OpenADR program's events be for VENs alone",
			Text: "What they asked for is withdrawn: instructions are stopped, limits end. With `dry_run=true` it only " +
				"says what that would do.",
			Answer: Answer{
				Text: "What is not asked for any more.",
				Body: sample[wire.ProgramBound](
					`{"program": {"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f77", "name": "Evening peak"}, "asked": [], "withdrawn": [` + sampleProgramOrder + `], "num_stays": 0}`,
				),
			},
			Problems: []Problem{notFound},
		},
	},
}
