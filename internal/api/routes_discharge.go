package api

import (
	"flexd/internal/wire"
)

// dischargeRoutes are the operations of the consent to discharge cars.
var dischargeRoutes = []Route{
	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}/discharge-consent",
		Role:      toRead,
		Component: true,
		handle:    (*Server).dischargeConsent,
		Operation: &Operation{
			ID: "get_site_discharge_consent", Tag: "sites", Addition: true,
			Summary: "The consent to discharge a site's cars, with its history",
			Answer: Answer{
				Text: "Since when it holds, and what was given and withdrawn.",
				Body: sample[wire.DischargeConsentResponse](`{
				"gave_discharge_consent_at": "2026-01-15T10:30:00Z",
				"history": [
					{"given": true, "given_at": "2026-01-15T10:30:00Z", "recorded_at": "2026-01-15T10:31:12Z"}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/discharge-consent",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).giveDischargeConsent,
		Operation: &Operation{
			ID: "give_site_discharge_consent", Tag: "sites", Addition: true,
			Summary: "Record consent to discharge a site's cars",
			Text: "It is asked for by itself: enrolling in full schedule control is no consent to it. It is kept\n" +
				"with its history. A car gives while it holds, and is charged alone once it is withdrawn.",
			Body: sample[wire.SiteDischargeConsentRequest](
				`{"gave_discharge_consent_at": "2026-01-15T10:30:00Z"}`,
			),
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](sampleSiteResponse),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/entities/site/{site_id}/discharge-consent",
		Role:    toWrite,
		handle:  (*Server).withdrawDischargeConsent,
		Operation: &Operation{
			ID: "withdraw_site_discharge_consent", Tag: "sites", Addition: true,
			Summary: "Withdraw the consent to discharge a site's cars",
			Text: "A consent that is given later must be dated\n" +
				"after the withdrawal. A site without the consent is returned as it is.",
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](sampleSiteResponse),
			},
			Problems: []Problem{notFound},
		},
	},
}
