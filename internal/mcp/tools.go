package mcp

import "net/http"

// tool is one operation of the interface as an agent has it.
type tool struct {
	name   string
	method string
	path   string

	// Of a tool that changes something: what is asked for in its first call. Without, it reads.
	dryRun *dryRun
}

// dryRun is the request whose answer shows what a change would do.
type dryRun struct {
	method string
	path   string // of the same parameters
	// added to the tool's own; the operation's dry run if set, else the current state
	query string
	// the member of the current state that must not change until the change is made; all of it if empty
	member string
	// whether the change makes the current state, or does without, where there is none
	mayLack bool
}

// showsCurrent reports whether the dry run shows the current state, which must not have changed until
// the change is made.
func (d *dryRun) showsCurrent() bool { return d.query == "" }

const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
)

// tools are all that there are: those that read, in the order of a day's questions, and then those
// that change something. What concerns persons and money is left to people: no tool registers,
// erases, enrols, withdraws or pays.
var tools = []tool{
	{name: "list_exceptions", method: get, path: "/operations/exceptions"},
	{name: "list_sites", method: get, path: "/entities/site"},
	{name: "get_site", method: get, path: "/entities/site/{site_id}"},
	{name: "get_site_eligibility", method: get, path: "/entities/site/{site_id}/eligibility"},
	{name: "get_site_forecast", method: get, path: "/entities/site/{site_id}/forecast"},
	{name: "list_flex_events", method: get, path: "/entities/site/{site_id}/flex-events"},
	{name: "list_assets", method: get, path: "/entities/asset"},
	{name: "get_asset", method: get, path: "/entities/asset/{asset_id}"},
	{name: "get_intent", method: get, path: "/entities/asset/{asset_id}/intent"},
	{name: "get_schedule", method: get, path: "/entities/asset/{asset_id}/schedule"},
	{name: "explain_schedule", method: get, path: "/entities/asset/{asset_id}/schedule/explanation"},
	{name: "get_charging_rate", method: get, path: "/entities/asset/{asset_id}/charging-rate"},
	{name: "get_known_heat", method: get, path: "/entities/asset/{asset_id}/heat"},
	{name: "list_sessions", method: get, path: "/entities/asset/{asset_id}/sessions"},
	{name: "get_battery_schedule", method: get, path: "/entities/asset/{asset_id}/battery-schedule"},
	{name: "get_asset_prices", method: get, path: "/entities/asset/{asset_id}/price-curve"},
	{name: "get_market_prices", method: get, path: "/market/curves"},
	{name: "list_reading_gaps", method: get, path: "/data/gaps"},
	{name: "list_deliveries", method: get, path: "/deliveries"},
	{name: "get_delivery", method: get, path: "/deliveries/{id}"},
	{name: "get_caps", method: get, path: "/caps"},
	{name: "get_fleet_envelope", method: get, path: "/grid/envelope"},
	{name: "get_fleet_ahead", method: get, path: "/grid/ahead"},
	{name: "list_offers", method: get, path: "/grid/offers"},
	{name: "list_instructions", method: get, path: "/grid/instructions"},
	{name: "get_instruction_report", method: get, path: "/grid/instructions/{id}"},
	{name: "what_if", method: post, path: "/what-if"},
	{name: "can_fleet_follow", method: post, path: "/grid/profile"},

	{
		name:   "send_instruction",
		method: post,
		path:   "/grid/instructions",
		dryRun: &dryRun{
			method: post,
			path:   "/grid/instructions",
			query:  "dry_run=true",
		},
	},
	{
		name:   "stop_instruction",
		method: post,
		path:   "/grid/instructions/{id}/stop",
		dryRun: &dryRun{
			method: get,
			path:   "/grid/instructions/{id}",
			member: "instruction", // the report beside it has its instant, and goes on
		},
	},
	{
		name:   "offer_flexibility",
		method: post,
		path:   "/grid/offers",
		dryRun: &dryRun{
			method: post,
			path:   "/grid/offers",
			query:  "dry_run=true",
		},
	},
	{
		name:   "set_caps",
		method: put,
		path:   "/caps",
		dryRun: &dryRun{method: get, path: "/caps", mayLack: true},
	},
	{
		name:   "charge_now",
		method: post,
		path:   "/entities/asset/{asset_id}/event/charge-now",
		dryRun: &dryRun{
			method:  get,
			path:    "/entities/asset/{asset_id}/intent",
			mayLack: true,
		},
	},
	{
		name:   "end_charge_now",
		method: post,
		path:   "/entities/asset/{asset_id}/event/charge-now-deleted",
		dryRun: &dryRun{
			method:  get,
			path:    "/entities/asset/{asset_id}/intent",
			mayLack: true,
		},
	},
	{
		name:   "change_intent",
		method: post,
		path:   "/entities/asset/{asset_id}/event/intent",
		dryRun: &dryRun{
			method:  get,
			path:    "/entities/asset/{asset_id}/intent",
			mayLack: true,
		},
	},
	{
		name:   "act_on_assets",
		method: post,
		path:   "/operations/assets/act",
		dryRun: &dryRun{
			method: post,
			path:   "/operations/assets/act",
			query:  "dry_run=true",
		},
	},
	{
		name:   "replay_delivery",
		method: post,
		path:   "/deliveries/{id}/replay",
		dryRun: &dryRun{method: get, path: "/deliveries/{id}"},
	},
}
