package guide

// chapter is a folder of the collection. The chapters and their calls stand in an order in
// which each finds what it needs, so that the collection runs whole from a fresh sandbox.
type chapter struct {
	name  string
	about string
	steps []step
}

// step is one operation of the document in the story.
type step struct {
	operation string // as "GET /path/{of}/the/document"
	// variables of the collection, by where the answer has them
	keep map[string]string
	// path and query parameters in place of the document's examples
	set  map[string]string
	body string // JSON in place of the document's example
	// the status in a fresh sandbox, where that is no success
	refused int
	why     string // it is refused there
}

// The home of the story, at the sandbox's metering points.
const (
	home = `{"mpan": "1099000010005", "postcode": "ZZ99 1AA", "street_address": "1 Sandbox Street",
  "email": "resident@example.com", "gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"}`
	neighbour = `{"mpan": "1099000010014", "postcode": "ZZ99 1AA", "street_address": "2 Sandbox Street", "email": "neighbour@example.com"}`
	tariff    = `{"off_peak_times": "00:00-05:30, 23:30-24:00", "timezone": "Europe/London"}`
	intent    = `{"energy_required_kwh": 20, "ready_by": "2026-01-01T07:00:00Z", "charging_mode": "minimise_charging_time"}`
)

var story = []chapter{
	{"auth", "The login gives the token that the other requests bear.", []step{
		{operation: "POST /auth/token-form", keep: map[string]string{"token": "access_token"}},
		{operation: "GET /auth/users/me/"},
		{operation: "POST /auth/component-token"},
	}},
	{"sandbox", "The clock is turned to six in the evening, so that a night lies ahead.", []step{
		{operation: "GET /sandbox/clock"},
		{
			operation: "POST /sandbox/clock",
			body:      `{"local_time": "18:00:00"}`,
			keep:      map[string]string{"date": "now.slice(0, 10)"},
		},
	}},
	{"meters", "", []step{
		{operation: "POST /validation/mpan", body: `{"mpan": "1099000010005"}`},
		{operation: "POST /meter/by-address", body: `{"address": "1 Sandbox Street, ZZ99 1AA"}`},
		{operation: "POST /meter/by-mpan", body: `{"mpan": "1099000010005"}`},
		{
			operation: "GET /meter/search",
			set:       map[string]string{"postcode": "ZZ99 1AA"},
			keep:      map[string]string{"meter_ref": "[0].ref"},
		},
		{operation: "GET /meter/by-ref/{meter_ref}"},
		{operation: "GET /meter/{meter_ref}/mpan"},
		{operation: "GET /meter/", set: map[string]string{"address": "1 Sandbox Street, ZZ99 1AA"}},
		{operation: "GET /meter/{mpan}", set: map[string]string{"mpan": "1099000010005"}},
	}},
	{"sites", "A home with a charger and a battery is registered, and enrolled.", []step{
		{operation: "POST /entities/site/check-eligibility", body: `{"mpan": "1099000010005"}`},
		{operation: "POST /entities/site/onboard", body: `{"site": ` + home + `,
  "assets": [{"external_id": "charger-001", "type": "charger", "properties": {"power_kw": 7.4}}, ` + battery + `],
  "proposition": "full_asset_schedule_control"}`,
			keep: map[string]string{
				"site_id":    "site.site_id",
				"asset_id":   "assets[0].asset_id",
				"battery_id": "assets[1].asset_id",
			}},
		{
			operation: "POST /entities/site/initialise",
			body: `{"site": ` + home + `,
  "assets": [{"external_id": "charger-001", "type": "charger", "properties": {"power_kw": 7.4}}]}`,
		},
		{operation: "POST /entities/site", body: neighbour, keep: map[string]string{"neighbour_id": "id"}},
		{
			operation: "POST /entities/site/onboard-site-and-asset",
			body: `{"site": {"mpan": "1099000010041", "postcode": "ZZ99 1AA", "street_address": "4 Sandbox Street",
  "email": "solar@example.com", "gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"},
  "asset": {"external_id": "charger-004", "type": "charger", "properties": {"power_kw": 7.4}},
  "dispatch_consent": {"dispatch_methods": ["limited_pause"]}}`,
			keep: map[string]string{
				"pause_site_id":  "site.id",
				"pause_asset_id": "asset.id",
			},
		},
		{operation: "GET /entities/site"},
		{operation: "GET /entities/site/{site_id}"},
		{operation: "PATCH /entities/site/{site_id}"},
		{operation: "GET /entities/site/{site_id}/eligibility"},
		{operation: "POST /entities/site/{site_id}/enrol"},
		{operation: "POST /entities/site/{site_id}/meter-consent"},
		{operation: "POST /entities/site/{site_id}/discharge-consent"},
		{operation: "GET /entities/site/{site_id}/discharge-consent"},
		{
			operation: "POST /entities/site/{site_id}/dispatch-consent",
			set:       map[string]string{"site_id": "{{pause_site_id}}"},
		},
		{
			operation: "GET /entities/site/{site_id}/oauth/{provider}/initiate",
			refused:   400,
			why:       "no maker's cloud is set up",
		},
		{operation: "POST /entities/site/{site_id}/token"},
		{operation: "GET /entities/site/{site_id}/price-curve"},
		{operation: "GET /entities/site/{site_id}/live"},
		{operation: "PUT /entities/site/{site_id}/solar-forecast",
			body: `{"source": "weather.example", "half_hours": [{"start_timestamp": "{{date}}T21:00:00Z", "energy_kwh": 0.8}]}`},
		{operation: "GET /entities/site/{site_id}/solar-forecast"},
		{operation: "GET /entities/site/{site_id}/forecast"},
		{operation: "GET /entities/site/{site_id}/flex-events"},
		{operation: "POST /entities/site/{site_id}/home-assistant-token"},
		{operation: "GET /vpp/home-assistant/event", set: map[string]string{"site_id": "{{site_id}}"}},
		{operation: "DELETE /entities/site/{site_id}/home-assistant-token"},
	}},
	{"assets", "", []step{
		{
			operation: "POST /entities/asset",
			body:      `{"external_id": "tank-001", "type": "hot water tank", "properties": {"power_kw": 3}, "site_id": "{{site_id}}"}`,
			keep:      map[string]string{"spare_asset_id": "id"},
		},
		{operation: "GET /entities/asset"},
		{
			operation: "GET /entities/asset/external-id/{external_id}",
			set:       map[string]string{"external_id": "charger-001"},
		},
		{operation: "GET /entities/asset/{asset_id}"},
		{operation: "PATCH /entities/asset/{asset_id}", body: `{"properties": {"power_kw": 11}}`},
		{operation: "GET /entities/asset/{asset_id}/price-curve"},
		{
			operation: "GET /entities/asset/{asset_id}/battery-schedule",
			set:       map[string]string{"asset_id": "{{battery_id}}"},
		},
		{
			operation: "GET /entities/asset/{asset_id}/todays-dispatch-schedule",
			set:       map[string]string{"asset_id": "{{battery_id}}"},
		},
	}},
	{
		"endpoints",
		"Where schedules are sent to. Nothing answers at the address of the example; put your own in its place.",
		[]step{
			{operation: "PUT /endpoints/{name}"},
			{operation: "GET /endpoints/{name}"},
			{operation: "POST /endpoints/{name}/test"},
			{operation: "POST /endpoints/{name}/rotate"},
		},
	},
	{"events", "A car is plugged in, and its user changes the plan.", []step{
		{operation: "POST /entities/asset/{asset_id}/event/tariff-update", body: `{"tariff": ` + tariff + `}`},
		{operation: "POST /entities/asset/{asset_id}/event/tariff", body: `{"tariff": ` + tariff + `}`},
		{
			operation: "POST /entities/asset/{asset_id}/event/plug-in",
			body:      `{"tariff": ` + tariff + `, "intent": ` + intent + `}`,
		},
		{operation: "POST /entities/asset/{asset_id}/event/intent", body: `{"intent": ` + intent + `}`},
		{operation: "GET /entities/asset/{asset_id}/intent"},
		{
			operation: "POST /entities/asset/{asset_id}/event/charge-now",
			body:      `{"end_at": "{{date}}T21:00:00Z"}`,
		},
		{operation: "POST /entities/asset/{asset_id}/event/charge-now-deleted"},
		{operation: "POST /entities/asset/{asset_id}/event/skip-night"},
		{operation: "POST /entities/asset/{asset_id}/event/skip-night-deleted"},
		{
			operation: "POST /entities/asset/{asset_id}/event",
			set:       map[string]string{"asset_id": "{{pause_asset_id}}"},
			body:      `{"event_type": "plug_in", "tariff": ` + tariff + `, "intent": ` + intent + `}`,
		},
		{
			operation: "POST /entities/asset/{asset_id}/event/plug-in-schedule",
			set:       map[string]string{"asset_id": "{{pause_asset_id}}"},
			body:      `{"charging_schedule": [{"start_timestamp": "{{date}}T19:30:00Z", "end_timestamp": "{{date}}T23:30:00Z"}]}`,
		},
	}},
	{"schedules", "What was planned, why, and what else would be.", []step{
		{operation: "GET /entities/asset/{asset_id}/schedule"},
		{operation: "GET /entities/asset/{asset_id}/schedule/explanation"},
		{operation: "GET /entities/asset/{asset_id}/charging-rate"},
		{
			operation: "GET /entities/asset/{asset_id}/heat",
			set:       map[string]string{"asset_id": "{{spare_asset_id}}"},
		},
		{operation: "GET /entities/asset/{asset_id}/sessions"},
		{
			operation: "POST /what-if",
			body:      `{"asset_ids": ["{{asset_id}}"], "intent": {"energy_required_kwh": 10, "charging_mode": "minimise_charging_time"}}`,
		},
		{operation: "GET /market/curves"},
	}},
	{"deliveries", "What was sent, and what became of it.", []step{
		{
			operation: "GET /deliveries",
			set: map[string]string{
				"kind":     "schedule",
				"asset_id": "{{asset_id}}",
			},
			keep: map[string]string{"delivery_id": "deliveries[0].id"},
		},
		{operation: "GET /deliveries/{id}", set: map[string]string{"id": "{{delivery_id}}"}},
		{operation: "POST /deliveries/{id}/replay", set: map[string]string{"id": "{{delivery_id}}"}},
		{
			operation: "POST /entities/asset/{asset_id}/callback/{event_id}",
			set:       map[string]string{"event_id": "{{delivery_id}}"},
		},
	}},
	{"grid", "What the fleet can do for the grid.", []step{
		{operation: "GET /grid/envelope"},
		{operation: "GET /grid/ahead"},
		{
			operation: "POST /grid/profile",
			body:      `{"half_hours": [{"start_timestamp": "{{date}}T21:00:00Z", "energy_kwh": 0}]}`,
		},
		{
			operation: "POST /grid/instructions",
			body:      `{"change_kw": -1, "start_timestamp": "{{date}}T20:30:00Z", "end_timestamp": "{{date}}T21:30:00Z", "service": "dno", "reason": "evening peak"}`,
			keep:      map[string]string{"instruction_id": "instruction.id"},
		},
		{operation: "GET /grid/instructions"},
		{operation: "GET /grid/instructions/{id}", set: map[string]string{"id": "{{instruction_id}}"}},
		{operation: "POST /grid/instructions/{id}/stop", set: map[string]string{"id": "{{instruction_id}}"}},
		{operation: "POST /grid/instructions/stop"},
		{
			operation: "POST /grid/offers",
			body:      `{"service": "dfs", "direction": "down", "start_timestamp": "{{date}}T22:00:00Z", "end_timestamp": "{{date}}T23:00:00Z", "confidence": 90}`,
			refused:   409,
			why:       "a fleet without past days can offer nothing yet",
		},
		{operation: "GET /grid/offers"},
		{
			operation: "POST /grid/offers/{id}/accept",
			body:      `{"power_kw": 1, "reason": "accepted in the auction"}`,
			refused:   404,
			why:       "there is no offer",
		},
		{
			operation: "POST /grid/products",
			body:      `{"products": [{"reference": "DNO-A", "service": "dno", "start_timestamp": "{{date}}T22:00:00Z", "end_timestamp": "{{date}}T23:00:00Z", "volume_kw": 1, "price_gbp_per_mwh": 250}]}`,
			keep:      map[string]string{"product_id": "products[0].id"},
		},
		{operation: "GET /grid/products"},
		{operation: "GET /grid/products/{id}", set: map[string]string{"id": "{{product_id}}"}},
		{operation: "GET /entities/site/{site_id}/products"},
		{
			operation: "PUT /entities/site/{site_id}/products/{id}",
			body:      `{"takes_part": true}`,
			set:       map[string]string{"id": "{{product_id}}"},
		},
		{operation: "POST /grid/products/{id}/withdraw", set: map[string]string{"id": "{{product_id}}"}},
		{
			operation: "PUT /caps",
			body:      `{"fleet": {"cap_kw": 1000, "starts_per_minute": 60}, "groups": [{"name": "feeder 7", "cap_kw": 500, "site_ids": ["{{site_id}}"]}]}`,
		},
		{operation: "GET /caps"},
		{
			operation: "PUT /grid/limits",
			body:      `{"limits": [{"group": "feeder 7", "start_timestamp": "{{date}}T22:00:00Z", "end_timestamp": "{{date}}T23:00:00Z", "limit_kw": 20}]}`,
		},
		{operation: "PUT /grid/limit-links", body: `{"group": "feeder 7", "fallback_kw": 50, "silence_seconds": 900}`},
		{operation: "POST /grid/limit-links/heard", body: `{"group": "feeder 7"}`},
		{operation: "GET /grid/limits"},
		{operation: "DELETE /grid/limit-links", set: map[string]string{"group": "feeder 7"}},
		{operation: "DELETE /grid/limits", set: map[string]string{"group": "feeder 7"}},
		{operation: "GET /grid/programs"},
		{
			operation: "PUT /grid/programs/{id}/binding",
			body:      `{"group": "feeder 7", "service": "dno", "simple_kw": [-100, -200]}`,
			refused:   404,
			why:       "there is no OpenADR program",
		},
		{operation: "DELETE /grid/programs/{id}/binding", refused: 404, why: "there is no OpenADR program"},
	}},
	{
		"data",
		"What was metered. The second reading is more than the charger can carry, and waits for somebody's word.",
		[]step{
			{operation: "POST /data/readings", body: `{"readings": [
  {"asset_id": "{{asset_id}}", "label": "charger_consumption_energy_kwh", "value": 1.5, "start_timestamp": "{{date}}T10:00:00Z", "end_timestamp": "{{date}}T10:30:00Z"},
  {"asset_id": "{{asset_id}}", "label": "charger_consumption_energy_kwh", "value": 510, "start_timestamp": "{{date}}T10:30:00Z", "end_timestamp": "{{date}}T11:00:00Z"}]}`},
			{operation: "GET /data/readings/held", keep: map[string]string{"reading_id": "readings[0].id"}},
			{
				operation: "POST /data/readings/held/{id}/release",
				set:       map[string]string{"id": "{{reading_id}}"},
			},
			{operation: "GET /data/gaps"},
		},
	},
	{"rewards", "", []step{
		{operation: "GET /rewards/{site_id}/info", set: map[string]string{"site_id": "{{site_id}}"}},
		{operation: "GET /rewards/{site_id}/url/balance"},
		{operation: "GET /rewards/{site_id}/transactions"},
		{operation: "GET /rewards/{site_id}/statement"},
	}},
	{"operations", "What needs looking at, and whether the service is well.", []step{
		{operation: "GET /operations/exceptions"},
		{operation: "GET /operations/alerts"},
		{
			operation: "POST /operations/alerts/{id}/acknowledge",
			body:      `{"note": "the supplier is called"}`,
			refused:   404,
			why:       "no alert is firing",
		},
		{
			operation: "POST /operations/alerts/{id}/snooze",
			body:      `{"minutes": 120, "note": "the supplier mends it tonight"}`,
			refused:   404,
			why:       "no alert is firing",
		},
		{
			operation: "POST /operations/assets/act",
			body:      `{"action": "replan", "asset_ids": ["{{asset_id}}"]}`,
		},
		{
			operation: "POST /operations/assets/offboard",
			body:      `{"asset_ids": ["{{asset_id}}"]}`,
			refused:   409,
			why:       "nothing confirms it",
		},
		{operation: "GET /operations/fleet"},
		{operation: "GET /operations/asset/{asset_id}"},
		{operation: "GET /operations/site/{site_id}", set: map[string]string{"site_id": "{{site_id}}"}},
		{operation: "GET /examples/dispatch-event"},
		{operation: "GET /examples/ocpp-charging-profile"},
		{operation: "GET /healthz"},
		{operation: "GET /readyz"},
	}},
	{"leaving", "What was made is ended.", []step{
		{operation: "POST /entities/asset/{asset_id}/event/plug-out"},
		{
			operation: "POST /entities/site/{site_id}/dispatch-deconsent",
			set:       map[string]string{"site_id": "{{pause_site_id}}"},
		},
		{operation: "POST /entities/site/{site_id}/unenrol"},
		{operation: "DELETE /entities/site/{site_id}/discharge-consent"},
		{operation: "DELETE /entities/site/{site_id}/meter-consent"},
		{operation: "DELETE /caps"},
		{operation: "DELETE /endpoints/{name}"},
		{
			operation: "DELETE /entities/asset/{asset_id}",
			set:       map[string]string{"asset_id": "{{spare_asset_id}}"},
		},
		{operation: "POST /entities/site/{site_id}/offboard-site-and-assets"},
		{operation: "DELETE /entities/site/{site_id}", set: map[string]string{"site_id": "{{neighbour_id}}"}},
	}},
}

const battery = `{"external_id": "battery-001", "type": "battery", "properties": {"power_kw": 5, "capacity_kwh": 10}}`
