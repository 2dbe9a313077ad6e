package api

import (
	"flexd/internal/wire"
)

// sampleMeterResponse is one as several operations show it.
const sampleMeterResponse = `{
	"mpan": "1234567890126",
	"half_hourly_settled": true,
	"supplier_mpid": "EXMP",
	"supplier_name": "Example Energy",
	"eligible_markets": ["cm", "dno", "wholesale"]
}`

// metersRoutes are the operations of meters.
var metersRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/validation/mpan",
		Role:    toLook,
		Limit:   mib,
		handle:  (*Server).validateMPAN,
		Operation: &Operation{
			ID: "validate_mpan_validation_mpan_post", Tag: "validation",
			Summary: "Check an MPAN",
			Text:    "Well formed, with a connected import meter that can be used.",
			Body:    sample[wire.MPANValidationRequest](`{"mpan": "1234567890126"}`),
			Answer: Answer{
				Text: "It can be used.",
				Body: sample[wire.MPANValidationResponse](`{"isValid": true}`),
			},
			Problems: []Problem{refusedMPAN, unknownMPAN, unavailable, timedOut},
		},
	},

	{
		Method:  "GET",
		Pattern: "/meter/search",
		Role:    toLook,
		Flat:    true,
		handle:  (*Server).searchMeters,
		Operation: &Operation{
			ID: "search_meters_meter_search_get", Tag: "meters",
			Summary: "Find the meters of a postcode",
			Text: "For letting a user choose; the reference of the chosen one goes to by-ref. A valid postcode " +
				"without meters gives an empty list.",
			Answer: Answer{
				Text: "The meters, perhaps none.",
				Body: sample[[]wire.MeterSearchResponse](
					`[{"ref": "mr1.9tXq…", "address": "10 Downing Street, London, SW1A 2AA"}]`,
				),
			},
			Problems: []Problem{unavailable, timedOut},
		},
	},

	{
		Method:  "GET",
		Pattern: "/meter/by-ref/{meter_ref}",
		Role:    toLook,
		Flat:    true,
		handle:  (*Server).meterByRef,
		Operation: &Operation{
			ID:      "get_meter_info_by_meter_ref_meter_by_ref__meter_ref__get",
			Tag:     "meters",
			Summary: "The meter of a reference",
			Answer: Answer{
				Text: "The meter.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{unavailable, timedOut},
		},
	},

	{
		Method:  "GET",
		Pattern: "/meter/{meter_ref}/mpan",
		Role:    toLook,
		Flat:    true,
		handle:  (*Server).meterByRef,
		Operation: &Operation{
			ID:         "get_meter_info_by_meter_ref_meter__meter_ref__mpan_get",
			Tag:        "meters",
			Deprecated: true,
			Summary:    "The meter of a reference, by the older path",
			Text:       "Use by-ref.",
			Answer: Answer{
				Text: "The meter.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/meter/by-address",
		Role:    toLook,
		Limit:   mib,
		Flat:    true,
		handle:  (*Server).meterByAddress,
		Operation: &Operation{
			ID:      "get_meter_info_by_address_meter_by_address_post",
			Tag:     "meters",
			Summary: "The meter at an address",
			Text:    "For addresses that are known to be whole.",
			Body:    sample[wire.MeterByAddressRequest](`{"address": "10 Downing Street, London, SW1A 2AA"}`),
			Answer: Answer{
				Text: "The one meter that fits.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{noUniqueMeter, unavailable, timedOut},
		},
	},

	{
		Method:  "POST",
		Pattern: "/meter/by-mpan",
		Role:    toLook,
		Limit:   mib,
		Flat:    true,
		handle:  (*Server).meterByMPAN,
		Operation: &Operation{
			ID: "get_meter_info_by_mpan_meter_by_mpan_post", Tag: "meters",
			Summary: "The meter of an MPAN",
			Body:    sample[wire.MeterByMPANRequest](`{"mpan": "1234567890126"}`),
			Answer: Answer{
				Text: "The meter.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{noUniqueMeter, unavailable, timedOut},
		},
	},

	{
		Method:  "GET",
		Pattern: "/meter/",
		Role:    toLook,
		Flat:    true,
		handle:  (*Server).meterByAddressQuery,
		Operation: &Operation{
			ID:         "get_meter_info_by_address_deprecated_meter__get",
			Tag:        "meters",
			Deprecated: true,
			Summary:    "The meter at an address, by the older path",
			Text:       "Use POST /meter/by-address.",
			Answer: Answer{
				Text: "The one meter that fits.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{unavailable, timedOut},
		},
	},

	{
		Method:  "GET",
		Pattern: "/meter/{mpan}",
		Role:    toLook,
		Flat:    true,
		handle:  (*Server).meterByMPANPath,
		Operation: &Operation{
			ID:         "get_meter_info_by_mpan_deprecated_meter__mpan__get",
			Tag:        "meters",
			Deprecated: true,
			Summary:    "The meter of an MPAN, by the older path",
			Text:       "Use POST /meter/by-mpan.",
			Answer: Answer{
				Text: "The meter.",
				Body: sample[wire.MeterResponse](sampleMeterResponse),
			},
			Problems: []Problem{unavailable, timedOut},
		},
	},
}
