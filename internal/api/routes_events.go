package api

import (
	"flexd/internal/wire"
)

// sampleTariffUpdateEventRequest is one as several operations show it.
const sampleTariffUpdateEventRequest = `{
	"tariff": {
		"off_peak_times": "00:00-05:30, 23:30-24:00",
		"timezone": "Europe/London",
		"tariff_type": "dual_rate"
	}
}`

// eventsRoutes are the operations of events.
var eventsRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/entities/asset/{asset_id}/callback/{event_id}",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).callback,
		Operation: &Operation{
			ID:       "event_handling_status_update_entities_asset__asset_id__callback__event_id__post",
			Tag:      "assets",
			Summary:  "Report what became of an event",
			Text:     "A status only moves forward; a repeated or an older one changes nothing.",
			Body:     sample[wire.EventResponse](`{"timestamp": "2026-01-15T10:10:02Z", "status": "ACCEPTED"}`),
			Answer:   Answer{Text: "Noted."},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		handle:    (*Server).event,
		Operation: &Operation{
			ID:      "asset_event_entities_asset__asset_id__event_post",
			Tag:     "events",
			Summary: "Report any event",
			Text: "The same as the operation of its own for each event type. Intent, vehicle and tariff belong to " +
				"plug_in and intent_update, end_at to charge_now.",
			Body: sample[wire.AssetEventRequest](`{
				"event_type": "plug_in",
				"intent": {
					"energy_required_kwh": 30,
					"ready_by": "2026-01-16T07:00:00Z",
					"ready_by_local_time": "07:00:00",
					"energy_estimated": false,
					"may_charge_peak": false,
					"charging_mode": "maximise_charging_time"
				},
				"vehicle": {"charging_rate_kw": 7.4},
				"tariff": {
					"off_peak_times": "00:00-05:30, 23:30-24:00",
					"timezone": "Europe/London",
					"tariff_type": "dual_rate"
				}
			}`),
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/plug-in",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		handle:    (*Server).plugIn,
		Operation: &Operation{
			ID:           "asset_plug_in_event_entities_asset__asset_id__event_plug_in_post",
			Tag:          "events",
			OptionalBody: true,
			Summary:      "A vehicle was plugged in",
			Text:         "What is left out is as it was sent last. The body may be left out.",
			Body: sample[wire.PlugInEventRequest](`{
				"intent": {
					"energy_required_kwh": 30,
					"ready_by": "2026-01-16T07:00:00Z",
					"ready_by_local_time": "07:00:00",
					"energy_estimated": false,
					"may_charge_peak": false,
					"charging_mode": "maximise_charging_time"
				},
				"vehicle": {"charging_rate_kw": 7.4},
				"tariff": {
					"off_peak_times": "00:00-05:30, 23:30-24:00",
					"timezone": "Europe/London",
					"tariff_type": "dual_rate"
				}
			}`),
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/plug-out",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		No400:     true,
		handle:    (*Server).plugOut,
		Operation: &Operation{
			ID:           "asset_plug_out_event_entities_asset__asset_id__event_plug_out_post",
			Tag:          "events",
			OptionalBody: true,
			Summary:      "The vehicle was unplugged",
			Text:         "Ends the session. The body may be left out.",
			Body:         sample[wire.PlugOutEventRequest](`{}`),
			Answer:       Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems:     []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/intent",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		No400:     true,
		handle:    (*Server).intentUpdate,
		Operation: &Operation{
			ID:      "asset_intent_update_event_entities_asset__asset_id__event_intent_post",
			Tag:     "events",
			Summary: "The intent has changed",
			Text:    "Kept until the next one.",
			Body: sample[wire.IntentEventRequest](`{
				"intent": {
					"energy_required_kwh": 30,
					"ready_by": "2026-01-16T07:00:00Z",
					"ready_by_local_time": "07:00:00",
					"energy_estimated": false,
					"may_charge_peak": false,
					"charging_mode": "maximise_charging_time"
				}
			}`),
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/charge-now",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		No400:     true,
		handle:    (*Server).chargeNow,
		Operation: &Operation{
			ID:       "asset_charge_now_event_entities_asset__asset_id__event_charge_now_post",
			Tag:      "events",
			Summary:  "Charge now",
			Text:     "At full power until end_at, whatever the plan was.",
			Body:     sample[wire.ChargeNowEventRequest](`{"end_at": "2026-01-15T19:00:00Z"}`),
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/charge-now-deleted",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		No400:     true,
		handle:    (*Server).chargeNowDeleted,
		Operation: &Operation{
			ID:           "asset_charge_now_deleted_event_entities_asset__asset_id__event_charge_now_deleted_post",
			Tag:          "events",
			OptionalBody: true,
			Summary:      "Charge now no longer",
			Text:         "The plan is made again. The body may be left out.",
			Body:         sample[wire.ChargeNowDeletedEventRequest](`{}`),
			Answer:       Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems:     []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/tariff-update",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		handle:    (*Server).tariffUpdate,
		Operation: &Operation{
			ID:       "asset_tariff_update_event_entities_asset__asset_id__event_tariff_update_post",
			Tag:      "events",
			Summary:  "The tariff has changed",
			Text:     "Kept until the next one. A body that is the tariff itself is taken too.",
			Body:     sample[wire.TariffUpdateEventRequest](sampleTariffUpdateEventRequest),
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/tariff",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		handle:    (*Server).tariffUpdate,
		Operation: &Operation{
			ID:         "asset_tariff_event",
			Tag:        "events",
			Addition:   true,
			Deprecated: true,
			Summary:    "The tariff has changed",
			Text:       "Kept until the next one. A body that is the tariff itself is taken too.",
			Body:       sample[wire.TariffUpdateEventRequest](sampleTariffUpdateEventRequest),
			Answer:     Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems:   []Problem{malformed, notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/skip-night",
		Role:      toWrite,
		Component: true,
		handle:    (*Server).skipNight,
		Operation: &Operation{
			ID: "asset_skip_night_event", Tag: "events", Addition: true,
			Summary:  "Charge nothing tonight",
			Text:     "Nothing is needed of what is plugged in until the deadline of its plan, whatever was asked for. Charge-now goes before it.",
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/skip-night-deleted",
		Role:      toWrite,
		Component: true,
		No400:     true,
		handle:    (*Server).skipNightDeleted,
		Operation: &Operation{
			ID: "asset_skip_night_deleted_event", Tag: "events", Addition: true,
			Summary:  "Charge as usual again",
			Text:     "Ends a skipped night, and an absence that the household's page was given.",
			Answer:   Answer{Text: "Noted. A schedule that it calls for is pushed on its own."},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "POST",
		Pattern:   "/entities/asset/{asset_id}/event/plug-in-schedule",
		Role:      toWrite,
		Component: true,
		Limit:     mib,
		No400:     true,
		handle:    (*Server).plugInSchedule,
		Operation: &Operation{
			ID:      "asset_plug_in_schedule_event_entities_asset__asset_id__event_plug_in_schedule_post",
			Tag:     "events",
			Summary: "Ask for a pause in a charging schedule",
			Text: "For limited_pause. The client's own schedule comes back, with one pause of 30 minutes where " +
				"that is worth it.",
			Body: sample[wire.PlugInScheduleEventRequest](`{
				"charging_schedule": [
					{
						"start_timestamp": "2026-01-15T22:00:00Z",
						"end_timestamp": "2026-01-16T06:00:00Z"
					}
				]
			}`),
			Answer: Answer{
				Text: "The schedule to follow.",
				Body: sample[wire.PlugInScheduleEventResponse](`{
				"modified_charging_schedule": [
					{
						"start_timestamp": "2026-01-15T22:00:00Z",
						"end_timestamp": "2026-01-16T01:00:00Z"
					},
					{
						"start_timestamp": "2026-01-16T01:30:00Z",
						"end_timestamp": "2026-01-16T06:00:00Z"
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}/intent",
		Role:      toRead,
		Component: true,
		handle:    (*Server).intent,
		Operation: &Operation{
			ID:      "get_latest_intent_entities_asset__asset_id__intent_get",
			Tag:     "assets",
			Summary: "The intent sent last",
			Answer: Answer{
				Text: "The intent.",
				Body: sample[wire.IntentResponse](`{
				"intent": {
					"energy_required_kwh": 30,
					"ready_by": "2026-01-16T07:00:00Z",
					"ready_by_local_time": "07:00:00",
					"energy_estimated": false,
					"may_charge_peak": false,
					"charging_mode": "maximise_charging_time"
				},
				"received_at": "2026-01-15T18:00:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
