package probe_test

// consent is the boundary meter's, in a body.
const consent = `"gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z"`

const intent = `"intent":{"energy_required_kwh":10,"ready_by":"2026-01-15T07:00:00Z"}`

// bodies are requests that the owner may make, by operation. SITE, ASSET, EXTERNAL, MPAN and
// ADDRESS stand for the place's.
var bodies = map[string]string{
	"POST /auth/token-form":      "username=nobody&password=nothing",
	"POST /auth/component-token": "external_user_id=user&allowed_origin=https://app.example.com&gave_boundary_meter_consent_at=2026-01-15T10:30:00Z",
	"POST /validation/mpan":      `{"mpan":"MPAN"}`,
	"POST /meter/by-address":     `{"address":"ADDRESS, London SW1A 2AA"}`,
	"POST /meter/by-mpan":        `{"mpan":"MPAN"}`,

	"POST /entities/site":                        `{"mpan":"1500000000033","postcode":"SW1A 2AA"}`,
	"POST /entities/site/initialise":             `{"site":{"mpan":"MPAN","postcode":"SW1A 2AA",` + consent + `},"assets":[{"external_id":"EXTERNAL","type":"charger"}]}`,
	"POST /entities/site/check-eligibility":      `{"mpan":"MPAN"}`,
	"POST /entities/site/onboard":                `{"site":{"mpan":"MPAN","postcode":"SW1A 2AA",` + consent + `},"assets":[{"external_id":"EXTERNAL","type":"charger"}],"proposition":"limited_pause"}`,
	"POST /entities/site/onboard-site-and-asset": `{"site":{"mpan":"1000000000012","postcode":"SW1A 2AA",` + consent + `},"asset":{"external_id":"old","type":"charger"},"dispatch_consent":{"dispatch_methods":[]}}`,
	"PATCH /entities/site/{site_id}":             `{"email":"new@example.com"}`,

	"POST /entities/site/{site_id}/enrol":              `{"proposition":"limited_pause"}`,
	"POST /entities/site/{site_id}/unenrol":            `{"proposition":"limited_pause"}`,
	"POST /entities/site/{site_id}/meter-consent":      "{" + consent + "}",
	"POST /entities/site/{site_id}/dispatch-consent":   `{"dispatch_methods":["vpp_limited_control"]}`,
	"POST /entities/site/{site_id}/dispatch-deconsent": `{"dispatch_methods":["vpp_limited_control"]}`,
	"POST /entities/site/{site_id}/token":              `{"refresh_token":"r"}`,

	"POST /entities/asset":             `{"external_id":"new","type":"battery","site_id":"SITE"}`,
	"PATCH /entities/asset/{asset_id}": `{"properties":{"power_kw":11}}`,

	"POST /entities/asset/{asset_id}/callback/{event_id}":      `{"timestamp":"2026-01-15T10:30:00Z","status":"RECEIVED"}`,
	"POST /entities/asset/{asset_id}/event":                    `{"event_type":"intent_update",` + intent + `}`,
	"POST /entities/asset/{asset_id}/event/plug-in":            `{` + intent + `}`,
	"POST /entities/asset/{asset_id}/event/plug-out":           `{}`,
	"POST /entities/asset/{asset_id}/event/intent":             `{` + intent + `}`,
	"POST /entities/asset/{asset_id}/event/charge-now":         `{"end_at":"2026-01-15T10:30:00Z"}`,
	"POST /entities/asset/{asset_id}/event/charge-now-deleted": `{}`,
	"POST /entities/asset/{asset_id}/event/tariff-update":      `{"tariff":{"off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London"}}`,
	"POST /entities/asset/{asset_id}/event/plug-in-schedule":   `{"charging_schedule":[{"start_timestamp":"2026-01-15T22:00:00Z","end_timestamp":"2026-01-16T06:00:00Z"}]}`,

	"POST /what-if":       `{"asset_ids":["ASSET"]}`,
	"POST /data/readings": `{"readings":[{"asset_id":"ASSET","start_timestamp":"2026-01-15T10:30:00Z","end_timestamp":"2026-01-15T11:00:00Z","value":1,"label":"charger_consumption_energy_kwh"}]}`,

	"PUT /endpoints/{name}": `{"url":"http://127.0.0.1:1/"}`,
	"POST /sandbox/clock":   `{"advance":"PT1S"}`,
}

// queries are what paths need after them.
var queries = map[string]string{
	"/meter/search":                  "?postcode=SW1A2AA",
	"/meter/":                        "?address=ADDRESS%2C%20London%20SW1A%202AA",
	"/rewards/{site_id}/url/balance": "?redirect_uri=https%3A%2F%2Fapp.example.com%2F",
	"/rewards/{site_id}/statement":   "?month=2026-01",
	"/data/gaps":                     "?site_id=SITE&from=2026-01-15&to=2026-01-16",
	"/market/curves":                 "?from=2026-01-15T00:00:00Z&to=2026-01-16T00:00:00Z",
}
