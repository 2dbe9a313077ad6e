package api

import (
	"flexd/internal/wire"
)

// enrolmentsRoutes are the operations of enrolments.
var enrolmentsRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/entities/site/initialise",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).initialise,
		Operation: &Operation{
			ID: "initialise_site_entities_site_initialise_post", Tag: "sites",
			Summary: "Register or complete a site and its assets",
			Text:    "What is known stays, and is filled up with what was missing. Nothing is enrolled.",
			Body: sample[wire.InitialiseRequest](`{
				"site": {
					"mpan": "1234567890126",
					"postcode": "SW1A 1AA",
					"street_address": "10 Downing Street",
					"email": "resident@example.com",
					"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
				},
				"assets": [
					{
						"external_id": "charger-001",
						"type": "charger",
						"asset_model": "zappi",
						"installation_date": "2025-06-15",
						"properties": {"power_kw": 7.4}
					}
				]
			}`),
			Answer: Answer{
				Text: "What became of each, and what the site is eligible for.",
				Body: sample[wire.InitialiseResponse](`{
				"site": {
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"site_created": true,
					"fields_updated": [],
					"warnings": []
				},
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-001",
						"asset_created": true,
						"fields_updated": [],
						"warnings": []
					}
				],
				"eligibility": {
					"eligible_propositions": ["limited_pause", "full_asset_schedule_control"],
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"site_properties": {
						"is_half_hourly_settled": true,
						"has_meter_consent": true
					},
					"assets": [
						{
							"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
							"external_id": "charger-001",
							"propositions": [
								{
									"proposition": "limited_pause",
									"is_eligible": true,
									"issues": []
								},
								{
									"proposition": "full_asset_schedule_control",
									"is_eligible": true,
									"issues": []
								}
							]
						}
					]
				}
			}`),
			},
			Problems: []Problem{malformed, notFound, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/check-eligibility",
		Role:    toRead,
		Limit:   mib,
		handle:  (*Server).checkEligibility,
		Operation: &Operation{
			ID:      "check_eligibility_entities_site_check_eligibility_post",
			Tag:     "sites",
			Summary: "Check what an MPAN would be eligible for",
			Text:    "Stores nothing.",
			Body:    sample[wire.EligibilityCheckRequest](`{"mpan": "1234567890126", "asset_model": "zappi"}`),
			Answer: Answer{
				Text: "Each proposition, and what stands in its way.",
				Body: sample[wire.EligibilityCheckResponse](`{
				"is_half_hourly_settled": true,
				"propositions": [
					{"proposition": "limited_pause", "is_eligible": true, "issues": []},
					{
						"proposition": "full_asset_schedule_control",
						"is_eligible": true,
						"issues": []
					}
				]
			}`),
			},
			Problems: []Problem{notFound, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/onboard",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).onboard,
		Operation: &Operation{
			ID: "onboard_entities_site_onboard_post", Tag: "sites",
			Summary: "Register a site and its assets and enrol it, all or nothing",
			Text: "May be repeated: what is known stays, and is filled up with what was missing. If the enrolment " +
				"fails, nothing is stored.",
			Body: sample[wire.OnboardRequest](`{
				"site": {
					"mpan": "1234567890126",
					"postcode": "SW1A 1AA",
					"street_address": "10 Downing Street",
					"email": "resident@example.com",
					"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
				},
				"assets": [
					{
						"external_id": "charger-001",
						"type": "charger",
						"asset_model": "zappi",
						"installation_date": "2025-06-15",
						"properties": {"power_kw": 7.4}
					}
				],
				"proposition": "limited_pause",
				"override_withdrawal": false
			}`),
			Answer: Answer{
				Text: "What became of each.",
				Body: sample[wire.OnboardResponse](`{
				"site": {
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"site_created": true,
					"fields_updated": [],
					"warnings": []
				},
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-001",
						"asset_created": true,
						"fields_updated": [],
						"warnings": []
					}
				],
				"enrolment": {"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "status": "enrolled"}
			}`),
			},
			Problems: []Problem{malformed, notFound, invalidOrUnmet, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/onboard-site-and-asset",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).onboardSiteAndAsset,
		Operation: &Operation{
			ID:         "onboard_site_and_asset_entities_site_onboard_site_and_asset_post",
			Tag:        "sites",
			Deprecated: true,
			Summary:    "Register a new site with one asset",
			Text:       "Use onboard. The site and the asset must be new.",
			Body: sample[wire.OnboardingRequest](`{
				"site": {
					"mpan": "1234567890126",
					"postcode": "SW1A 1AA",
					"street_address": "10 Downing Street",
					"email": "resident@example.com",
					"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
				},
				"asset": {
					"external_id": "charger-001",
					"type": "charger",
					"asset_model": "zappi",
					"installation_date": "2025-06-15",
					"properties": {"power_kw": 7.4}
				},
				"dispatch_consent": {"dispatch_methods": ["limited_pause"]}
			}`),
			Answer: Answer{
				Text: "Both.",
				Body: sample[wire.OnboardingResponse](`{
				"site": {
					"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"mpan": "1234567890126",
					"postcode": "SW1A 1AA",
					"address": "10 Downing Street",
					"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
					"markets": ["wholesale"],
					"dispatch_methods": ["full_asset_schedule_control"],
					"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
				},
				"asset": {
					"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
					"external_id": "charger-001",
					"type": "charger",
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"properties": {"power_kw": 7.4}
				}
			}`),
			},
			Problems: []Problem{malformed, notFound, invalidOrUnmet, unavailable, timedOut},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}/eligibility",
		Role:      toRead,
		Component: true,
		handle:    (*Server).siteEligibility,
		Operation: &Operation{
			ID:      "get_site_eligibility_entities_site__site_id__eligibility_get",
			Tag:     "sites",
			Summary: "What a site is eligible for",
			Answer: Answer{
				Text: "The site, and each of its assets.",
				Body: sample[wire.SiteEligibilityDetail](`{
				"eligible_propositions": ["limited_pause", "full_asset_schedule_control"],
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"site_properties": {"is_half_hourly_settled": true, "has_meter_consent": true},
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-001",
						"propositions": [
							{
								"proposition": "limited_pause",
								"is_eligible": true,
								"issues": []
							},
							{
								"proposition": "full_asset_schedule_control",
								"is_eligible": true,
								"issues": []
							}
						]
					}
				]
			}`),
			},
			Problems: []Problem{notFound, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/enrol",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).enrol,
		Operation: &Operation{
			ID: "enrol_site_entities_site__site_id__enrol_post", Tag: "sites",
			Summary: "Enrol a site in a proposition",
			Body: sample[wire.EnrolRequest](
				`{"proposition": "full_asset_schedule_control", "override_withdrawal": false}`,
			),
			Answer: Answer{
				Text: "It is enrolled, or was already.",
				Body: sample[wire.EnrolResponse](
					`{"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "status": "enrolled"}`,
				),
			},
			Problems: []Problem{notFound, invalidOrUnmet, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/unenrol",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).unenrol,
		Operation: &Operation{
			ID:      "unenrol_site_entities_site__site_id__unenrol_post",
			Tag:     "sites",
			Summary: "Take a site out of a proposition",
			Text:    "Scheduling stops; the site, its assets and its other propositions stay, and so does its money.",
			Body:    sample[wire.UnenrolRequest](`{"proposition": "full_asset_schedule_control"}`),
			Answer: Answer{
				Text: "It is out, or was already.",
				Body: sample[wire.UnenrolResponse](
					`{"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "status": "unenrolled"}`,
				),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/offboard-site-and-assets",
		Role:    toWrite,
		handle:  (*Server).offboard,
		Operation: &Operation{
			ID:      "offboard_site_and_assets_entities_site__site_id__offboard_site_and_assets_post",
			Tag:     "sites",
			Summary: "Remove a site and its assets",
			Text:    "Ends every enrolment and deletes the site with its assets. Its money can no longer be reached.",
			Answer: Answer{
				Text: "What was removed.",
				Body: sample[wire.OnboardingResponse](`{
				"site": {
					"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"mpan": "1234567890126",
					"postcode": "SW1A 1AA",
					"address": "10 Downing Street",
					"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
					"markets": ["wholesale"],
					"dispatch_methods": ["full_asset_schedule_control"],
					"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
				},
				"asset": {
					"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
					"external_id": "charger-001",
					"type": "charger",
					"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
					"properties": {"power_kw": 7.4}
				},
				"assets": [
					{
						"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-001",
						"type": "charger",
						"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
						"properties": {"power_kw": 7.4}
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/meter-consent",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).meterConsent,
		Operation: &Operation{
			ID:      "add_site_meter_consent_entities_site__site_id__meter_consent_post",
			Tag:     "sites",
			Summary: "Record consent to the use of the boundary meter",
			Body: sample[wire.SiteMeterConsentRequest](
				`{"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"}`,
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
		Pattern: "/entities/site/{site_id}/meter-consent",
		Role:    toWrite,
		handle:  (*Server).withdrawMeterConsent,
		Operation: &Operation{
			ID: "withdraw_site_meter_consent", Tag: "sites", Addition: true,
			Summary: "Withdraw the consent to the use of the boundary meter",
			Text: "From now on nothing that is read at the boundary is used. What was read while the\n" +
				"consent held still settles what happened then. A consent that is given later must be\n" +
				"dated after the withdrawal. A site without the consent is returned as it is.",
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](`{
				"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"mpan": "1234567890126",
				"postcode": "SW1A 1AA",
				"address": "10 Downing Street",
				"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
				"markets": ["wholesale"],
				"dispatch_methods": ["full_asset_schedule_control"],
				"import_capacity_kw": 23,
				"export_capacity_kw": 23,
				"capacity_source": "default"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/dispatch-consent",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).dispatchConsent,
		Operation: &Operation{
			ID:      "add_site_dispatch_consent_entities_site__site_id__dispatch_consent_post",
			Tag:     "sites",
			Summary: "Record consent to dispatch methods",
			Body:    sample[wire.SiteDispatchConsentRequest](`{"dispatch_methods": ["limited_pause"]}`),
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](sampleSiteResponse),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/site/{site_id}/dispatch-deconsent",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).dispatchDeconsent,
		Operation: &Operation{
			ID:      "remove_site_dispatch_consent_entities_site__site_id__dispatch_deconsent_post",
			Tag:     "sites",
			Summary: "Withdraw consent to dispatch methods",
			Body:    sample[wire.SiteDispatchConsentRequest](`{"dispatch_methods": ["limited_pause"]}`),
			Answer: Answer{
				Text: "The site as it is now.",
				Body: sample[wire.SiteResponse](`{
				"id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"mpan": "1234567890126",
				"postcode": "SW1A 1AA",
				"address": "10 Downing Street",
				"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
				"markets": ["wholesale"],
				"dispatch_methods": [],
				"gave_boundary_meter_consent_at": "2026-01-15T10:30:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
