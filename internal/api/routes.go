package api

import (
	"slices"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// Beside the interface's roles, who may call an operation.
const (
	Public flex.Role = "public" // anyone, without a token
	Anyone flex.Role = "anyone" // any valid token
)

// Route is one operation of the surface.
type Route struct {
	Method, Pattern string
	Role            flex.Role // that the token needs, or Public or Anyone
	Component       bool      // whether a component token may call it for its own site
	Limit           int64     // bytes of the body; 0 means that none is read
	Flat            bool      // whether faults are shown as one text, {"detail": "…"}
	No400           bool      // whether a request that cannot be acted on is a 422 here, for want of a 400
	Repeatable      bool      // whether the same request has the same answer when it is run again
	Document        bool      // whether it answers anybody with a page of the documentation
	Secret          bool      // whether the answer holds a secret that is shown once, and is not kept

	handle func(*Server, *request) (answer, error)
}

// Routes returns the whole surface, in the interface's order.
func Routes() []Route { return slices.Clone(surface) }

// Short names, so that a route fits on its line.
const (
	toRead, toWrite, toLook = flex.EntityRead, flex.EntityWrite, flex.Lookup
	mib, kib4               = wire.MaxBody, wire.MaxForm
)

var surface = []Route{
	// auth.go
	{Method: "POST", Pattern: "/auth/token-form", Role: Public, Limit: kib4, handle: (*Server).login},
	{Method: "GET", Pattern: "/auth/users/me/", Role: Anyone, Component: true, handle: (*Server).me},
	{Method: "POST", Pattern: "/auth/component-token", Role: flex.Components, Limit: kib4, Repeatable: true, handle: (*Server).componentToken},

	// meters.go
	{Method: "POST", Pattern: "/validation/mpan", Role: toLook, Limit: mib, handle: (*Server).validateMPAN},
	{Method: "GET", Pattern: "/meter/search", Role: toLook, Flat: true, handle: (*Server).searchMeters},
	{Method: "GET", Pattern: "/meter/by-ref/{meter_ref}", Role: toLook, Flat: true, handle: (*Server).meterByRef},
	{Method: "GET", Pattern: "/meter/{meter_ref}/mpan", Role: toLook, Flat: true, handle: (*Server).meterByRef},
	{Method: "POST", Pattern: "/meter/by-address", Role: toLook, Limit: mib, Flat: true, handle: (*Server).meterByAddress},
	{Method: "POST", Pattern: "/meter/by-mpan", Role: toLook, Limit: mib, Flat: true, handle: (*Server).meterByMPAN},
	{Method: "GET", Pattern: "/meter/", Role: toLook, Flat: true, handle: (*Server).meterByAddressQuery},
	{Method: "GET", Pattern: "/meter/{mpan}", Role: toLook, Flat: true, handle: (*Server).meterByMPANPath},

	// sites.go
	{Method: "GET", Pattern: "/entities/site", Role: toRead, handle: (*Server).listSites},
	{Method: "POST", Pattern: "/entities/site", Role: toWrite, Limit: mib, Flat: true, handle: (*Server).createSite},
	{Method: "POST", Pattern: "/entities/site/initialise", Role: toWrite, Limit: mib, handle: (*Server).initialise},
	{Method: "POST", Pattern: "/entities/site/check-eligibility", Role: toRead, Limit: mib, handle: (*Server).checkEligibility},
	{Method: "POST", Pattern: "/entities/site/onboard", Role: toWrite, Limit: mib, handle: (*Server).onboard},
	{Method: "POST", Pattern: "/entities/site/onboard-site-and-asset", Role: toWrite, Limit: mib, handle: (*Server).onboardSiteAndAsset},
	{Method: "GET", Pattern: "/entities/site/{site_id}", Role: toRead, Component: true, handle: (*Server).getSite},
	{Method: "PATCH", Pattern: "/entities/site/{site_id}", Role: toWrite, Limit: mib, handle: (*Server).updateSite},
	{Method: "DELETE", Pattern: "/entities/site/{site_id}", Role: toWrite, handle: (*Server).deleteSite},
	{Method: "GET", Pattern: "/entities/site/{site_id}/eligibility", Role: toRead, Component: true, handle: (*Server).siteEligibility},
	{Method: "POST", Pattern: "/entities/site/{site_id}/enrol", Role: toWrite, Limit: mib, handle: (*Server).enrol},
	{Method: "POST", Pattern: "/entities/site/{site_id}/unenrol", Role: toWrite, Limit: mib, handle: (*Server).unenrol},
	{Method: "POST", Pattern: "/entities/site/{site_id}/offboard-site-and-assets", Role: toWrite, handle: (*Server).offboard},
	{Method: "POST", Pattern: "/entities/site/{site_id}/meter-consent", Role: toWrite, Limit: mib, handle: (*Server).meterConsent},
	{Method: "DELETE", Pattern: "/entities/site/{site_id}/meter-consent", Role: toWrite, handle: (*Server).withdrawMeterConsent},
	{Method: "POST", Pattern: "/entities/site/{site_id}/dispatch-consent", Role: toWrite, Limit: mib, handle: (*Server).dispatchConsent},
	{Method: "POST", Pattern: "/entities/site/{site_id}/dispatch-deconsent", Role: toWrite, Limit: mib, handle: (*Server).dispatchDeconsent},
	{Method: "POST", Pattern: "/entities/site/{site_id}/token", Role: toWrite, Limit: mib, handle: (*Server).siteToken},
	{Method: "GET", Pattern: "/entities/site/{site_id}/oauth/{provider}/initiate", Role: toRead, handle: (*Server).initiateOAuth},
	{Method: "GET", Pattern: oauthReturn, Role: Public, handle: (*Server).oauthCallback},
	{Method: "GET", Pattern: "/entities/site/{site_id}/flex-events", Role: toRead, handle: (*Server).flexEvents},
	{Method: "GET", Pattern: "/entities/site/{site_id}/price-curve", Role: toRead, Component: true, handle: (*Server).sitePriceCurve},
	{Method: "GET", Pattern: "/entities/site/{site_id}/forecast", Role: toRead, handle: (*Server).siteForecast},
	{Method: "GET", Pattern: "/entities/site/{site_id}/solar-forecast", Role: toRead, handle: (*Server).solarForecast},
	{Method: "PUT", Pattern: "/entities/site/{site_id}/solar-forecast", Role: toWrite, Limit: mib, Repeatable: true, handle: (*Server).setSolarForecast},

	// assets.go
	{Method: "GET", Pattern: "/entities/asset", Role: toRead, handle: (*Server).listAssets},
	{Method: "POST", Pattern: "/entities/asset", Role: toWrite, Limit: mib, handle: (*Server).createAsset},
	{Method: "GET", Pattern: "/entities/asset/external-id/{external_id}", Role: toRead, Component: true, handle: (*Server).assetByExternalID},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}", Role: toRead, Component: true, handle: (*Server).getAsset},
	{Method: "PATCH", Pattern: "/entities/asset/{asset_id}", Role: toWrite, Limit: mib, handle: (*Server).updateAsset},
	{Method: "DELETE", Pattern: "/entities/asset/{asset_id}", Role: toWrite, handle: (*Server).deleteAsset},

	// events.go
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/callback/{event_id}", Role: toWrite, Limit: mib, handle: (*Server).callback},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event", Role: toWrite, Component: true, Limit: mib, handle: (*Server).event},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/plug-in", Role: toWrite, Component: true, Limit: mib, handle: (*Server).plugIn},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/plug-out", Role: toWrite, Component: true, Limit: mib, No400: true, handle: (*Server).plugOut},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/intent", Role: toWrite, Component: true, Limit: mib, No400: true, handle: (*Server).intentUpdate},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/charge-now", Role: toWrite, Component: true, Limit: mib, No400: true, handle: (*Server).chargeNow},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/charge-now-deleted", Role: toWrite, Component: true, Limit: mib, No400: true, handle: (*Server).chargeNowDeleted},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/tariff-update", Role: toWrite, Component: true, Limit: mib, handle: (*Server).tariffUpdate},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/tariff", Role: toWrite, Component: true, Limit: mib, handle: (*Server).tariffUpdate},
	{Method: "POST", Pattern: "/entities/asset/{asset_id}/event/plug-in-schedule", Role: toWrite, Component: true, Limit: mib, No400: true, handle: (*Server).plugInSchedule},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/intent", Role: toRead, Component: true, handle: (*Server).intent},

	// schedules.go
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/battery-schedule", Role: toRead, Component: true, handle: (*Server).batterySchedule},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/todays-dispatch-schedule", Role: toRead, Component: true, handle: (*Server).dispatchPlan},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/schedule", Role: toRead, Component: true, handle: (*Server).schedule},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/schedule/explanation", Role: toRead, Component: true, handle: (*Server).scheduleExplanation},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/charging-rate", Role: toRead, Component: true, handle: (*Server).chargingRate},
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/sessions", Role: toRead, Component: true, handle: (*Server).sessions},
	{Method: "POST", Pattern: "/what-if", Role: toRead, Limit: mib, Repeatable: true, handle: (*Server).whatIf},

	// prices.go
	{Method: "GET", Pattern: "/entities/asset/{asset_id}/price-curve", Role: toRead, Component: true, handle: (*Server).assetPriceCurve},
	{Method: "GET", Pattern: "/market/curves", Role: toRead, handle: (*Server).marketCurves},

	// readings.go
	{Method: "POST", Pattern: "/data/readings", Role: flex.MetricsWrite, Limit: wire.MaxReadingsBody, Repeatable: true, handle: (*Server).readings},
	{Method: "GET", Pattern: "/data/readings/held", Role: toRead, handle: (*Server).heldReadings},
	{Method: "POST", Pattern: "/data/readings/held/{id}/release", Role: toWrite, Limit: mib, handle: (*Server).releaseHeld},
	{Method: "GET", Pattern: "/data/gaps", Role: toRead, handle: (*Server).gaps},

	// rewards.go
	{Method: "GET", Pattern: "/rewards/{site_id}/info", Role: flex.Rewards, handle: (*Server).balance},
	{Method: "GET", Pattern: "/rewards/{site_id}/url/balance", Role: flex.Rewards, handle: (*Server).balanceURL},
	{Method: "GET", Pattern: "/rewards/{site_id}/transactions", Role: flex.Rewards, handle: (*Server).transactions},
	{Method: "GET", Pattern: "/rewards/{site_id}/statement", Role: flex.Rewards, handle: (*Server).statement},

	// examples.go
	{Method: "GET", Pattern: "/examples/dispatch-event", Role: Anyone, handle: (*Server).exampleDispatchEvent},
	{Method: "GET", Pattern: "/examples/ocpp-charging-profile", Role: Anyone, handle: (*Server).exampleChargingProfile},

	// deliveries.go
	{Method: "GET", Pattern: "/endpoints/{name}", Role: toRead, handle: (*Server).endpoint},
	{Method: "PUT", Pattern: "/endpoints/{name}", Role: toWrite, Limit: mib, Repeatable: true, handle: (*Server).setEndpoint},
	{Method: "DELETE", Pattern: "/endpoints/{name}", Role: toWrite, handle: (*Server).deleteEndpoint},
	{Method: "POST", Pattern: "/endpoints/{name}/test", Role: toWrite, handle: (*Server).testEndpoint},
	{Method: "POST", Pattern: "/endpoints/{name}/rotate", Role: toWrite, Secret: true, handle: (*Server).rotateEndpoint},
	{Method: "GET", Pattern: "/deliveries", Role: toRead, handle: (*Server).deliveries},
	{Method: "GET", Pattern: "/deliveries/{id}", Role: toRead, handle: (*Server).delivery},
	{Method: "POST", Pattern: "/deliveries/{id}/replay", Role: toWrite, handle: (*Server).replay},

	// caps.go
	{Method: "GET", Pattern: "/caps", Role: toRead, handle: (*Server).caps},
	{Method: "PUT", Pattern: "/caps", Role: toWrite, Limit: mib, Repeatable: true, handle: (*Server).setCaps},
	{Method: "DELETE", Pattern: "/caps", Role: toWrite, handle: (*Server).clearCaps},

	// grid.go
	{Method: "GET", Pattern: "/grid/envelope", Role: toRead, handle: (*Server).envelope},
	{Method: "GET", Pattern: "/grid/ahead", Role: toRead, handle: (*Server).ahead},
	{Method: "POST", Pattern: "/grid/profile", Role: toRead, Limit: mib, Repeatable: true, handle: (*Server).profile},

	// instructions.go
	{Method: "GET", Pattern: "/grid/instructions", Role: toRead, handle: (*Server).instructions},
	{Method: "POST", Pattern: "/grid/instructions", Role: toWrite, Limit: mib, handle: (*Server).instruct},
	{Method: "POST", Pattern: "/grid/instructions/stop", Role: toWrite, handle: (*Server).stopInstructions},
	{Method: "GET", Pattern: "/grid/instructions/{id}", Role: toRead, handle: (*Server).instruction},
	{Method: "POST", Pattern: "/grid/instructions/{id}/stop", Role: toWrite, handle: (*Server).stopInstruction},

	// offers.go
	{Method: "GET", Pattern: "/grid/offers", Role: toRead, handle: (*Server).offers},
	{Method: "POST", Pattern: "/grid/offers", Role: toWrite, Limit: mib, handle: (*Server).offer},
	{Method: "POST", Pattern: "/grid/offers/{id}/accept", Role: toWrite, Limit: mib, handle: (*Server).acceptOffer},

	// operations.go
	{Method: "GET", Pattern: "/operations/exceptions", Role: toRead, handle: (*Server).exceptions},

	// clock.go
	{Method: "GET", Pattern: "/sandbox/clock", Role: toRead, handle: (*Server).clock},
	{Method: "POST", Pattern: "/sandbox/clock", Role: toWrite, Limit: mib, handle: (*Server).setClock},

	// docs.go
	{Method: "GET", Pattern: "/openapi.json", Role: Public, Document: true, handle: (*Server).openAPI},
	{Method: "GET", Pattern: "/docs", Role: Public, Document: true, handle: (*Server).docs},
	{Method: "GET", Pattern: "/docs/{file}", Role: Public, Document: true, handle: (*Server).docs},
	{Method: "GET", Pattern: "/llms.txt", Role: Public, Document: true, handle: (*Server).llms},

	// probes.go
	{Method: "GET", Pattern: "/healthz", Role: Public, handle: (*Server).healthz},
	{Method: "GET", Pattern: "/readyz", Role: Public, handle: (*Server).readyz},
	{Method: "GET", Pattern: "/metrics", Role: Public, handle: (*Server).showMetrics},
}
