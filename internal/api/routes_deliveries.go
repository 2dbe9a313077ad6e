package api

import (
	"flexd/internal/wire"
)

// deliveriesRoutes are the operations of deliveries.
var deliveriesRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/endpoints/{name}",
		Role:    toRead,
		handle:  (*Server).endpoint,
		Operation: &Operation{
			ID: "get_endpoint", Tag: "deliveries", Addition: true,
			Summary: "Read where pushes go",
			Answer: Answer{
				Text: "The endpoint.",
				Body: sample[wire.EndpointResponse](`{
				"id": "e5f6a7b8-c9d0-4123-aef0-567890123456",
				"name": "schedule",
				"url": "https://client.example/ocpp/{external_id}",
				"header_names": ["X-Api-Key"],
				"bare": false,
				"nulls": false,
				"batch": false,
				"enabled": true,
				"rate": 1000,
				"concurrency": 64,
				"created_at": "2026-01-15T10:00:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:     "PUT",
		Pattern:    "/endpoints/{name}",
		Role:       toWrite,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).setEndpoint,
		Operation: &Operation{
			ID: "put_endpoint", Tag: "deliveries", Addition: true,
			Summary: "Set where pushes go",
			Text: "An organisation has one endpoint for charging profiles and one for dispatch events. Private " +
				"addresses are refused unless the operator allows them. What the endpoint refused before is " +
				"offered to it again, if it is an asset's newest schedule and not over. A secret that is made is in the first answer alone: " +
				"if that was lost, POST /endpoints/{name}/rotate makes another one.",
			Body: sample[wire.EndpointRequest](`{
				"url": "https://client.example/ocpp/{external_id}",
				"headers": [{"name": "X-Api-Key", "value": "s3cret"}],
				"bare": false
			}`),
			Answer: Answer{
				Text: "The endpoint, with its secret if one was made.",
				Body: sample[wire.EndpointResponse](`{
				"id": "e5f6a7b8-c9d0-4123-aef0-567890123456",
				"name": "schedule",
				"url": "https://client.example/ocpp/{external_id}",
				"header_names": ["X-Api-Key"],
				"bare": false,
				"nulls": false,
				"batch": false,
				"enabled": true,
				"rate": 1000,
				"concurrency": 64,
				"created_at": "2026-01-15T10:00:00Z",
				"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			}`),
			},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/endpoints/{name}",
		Role:    toWrite,
		handle:  (*Server).deleteEndpoint,
		Operation: &Operation{
			ID: "delete_endpoint", Tag: "deliveries", Addition: true,
			Summary:  "Forget an endpoint",
			Text:     "What is due waits for another.",
			Answer:   Answer{Text: "It is forgotten.", Empty: true},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/endpoints/{name}/test",
		Role:    toWrite,
		InParts: true, // a repeat waits for a message of its own
		handle:  (*Server).testEndpoint,
		Operation: &Operation{
			ID: "test_endpoint", Tag: "deliveries", Addition: true,
			Summary: "Send a test message",
			Text:    "It is signed like any push and names the asset of zeros. Waits for the answer, 20 s at most.",
			Answer: Answer{
				Text: "The test message as a delivery.",
				Body: sample[wire.EndpointTestResponse](`{
				"accepted": true,
				"delivery": {
					"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
					"kind": "test",
					"endpoint": "schedule",
					"generation": 1,
					"status": "accepted",
					"num_attempts": 1,
					"created_at": "2026-01-15T22:00:01Z",
					"finished_at": "2026-01-15T22:00:01.25Z",
					"url": "https://client.example/ocpp/",
					"attempts": [
						{
							"at": "2026-01-15T22:00:01Z",
							"status_code": 200,
							"duration_ms": 41.5
						}
					],
					"callbacks": []
				}
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/endpoints/{name}/rotate",
		Role:    toWrite,
		Secret:  true,
		handle:  (*Server).rotateEndpoint,
		Operation: &Operation{
			ID: "rotate_endpoint_secret", Tag: "deliveries", Addition: true,
			Summary: "Change the secret",
			Text:    "For 24 hours pushes bear two signatures, by the new secret and by the one before.",
			Answer: Answer{
				Text: "The endpoint with its new secret.",
				Body: sample[wire.EndpointResponse](`{
				"id": "e5f6a7b8-c9d0-4123-aef0-567890123456",
				"name": "schedule",
				"url": "https://client.example/ocpp/{external_id}",
				"header_names": ["X-Api-Key"],
				"bare": false,
				"nulls": false,
				"batch": false,
				"enabled": true,
				"rate": 1000,
				"concurrency": 64,
				"created_at": "2026-01-15T10:00:00Z",
				"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
				"old_secret_until": "2026-01-16T10:00:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/deliveries",
		Role:    toRead,
		handle:  (*Server).deliveries,
		Operation: &Operation{
			ID: "get_deliveries", Tag: "deliveries", Addition: true,
			Summary: "List pushes",
			Text:    "Newest first.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.DeliveryResponsePage](`{
				"deliveries": [
					{
						"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
						"kind": "schedule",
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"endpoint": "schedule",
						"generation": 3,
						"status": "accepted",
						"callback_status": "ACCEPTED",
						"num_attempts": 1,
						"created_at": "2026-01-15T22:00:01Z",
						"finished_at": "2026-01-15T22:00:01.25Z"
					}
				]
			}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/deliveries/{id}",
		Role:    toRead,
		handle:  (*Server).delivery,
		Operation: &Operation{
			ID: "get_delivery", Tag: "deliveries", Addition: true,
			Summary: "One push and its attempts",
			Answer: Answer{
				Text: "The push.",
				Body: sample[wire.DeliveryDetail](`{
				"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
				"kind": "schedule",
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"endpoint": "schedule",
				"generation": 3,
				"status": "accepted",
				"callback_status": "ACCEPTED",
				"num_attempts": 1,
				"created_at": "2026-01-15T22:00:01Z",
				"finished_at": "2026-01-15T22:00:01.25Z",
				"payload": {
					"connectorId": 1,
					"csChargingProfiles": {
						"chargingProfileId": 1,
						"stackLevel": 1100,
						"chargingProfilePurpose": "TxProfile",
						"chargingProfileKind": "Absolute",
						"chargingSchedule": {
							"duration": 32400,
							"startSchedule": "2026-04-14T22:00:00Z",
							"chargingRateUnit": "W",
							"chargingSchedulePeriod": [
								{
									"startPeriod": 0,
									"limit": 0.0,
									"numberPhases": 1
								},
								{
									"startPeriod": 5400,
									"limit": 99999.0,
									"numberPhases": 1
								},
								{
									"startPeriod": 27000,
									"limit": 0.0,
									"numberPhases": 1
								}
							],
							"minChargingRate": 0.0
						}
					}
				},
				"url": "https://client.example/ocpp/charger-001",
				"attempts": [{"at": "2026-01-15T22:00:01Z", "status_code": 200, "duration_ms": 41.5}],
				"callbacks": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"status": "ACCEPTED",
						"timestamp": "2026-01-15T22:00:02Z",
						"received_at": "2026-01-15T22:00:02.1Z"
					}
				]
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/deliveries/{id}/replay",
		Role:    toWrite,
		handle:  (*Server).replay,
		Operation: &Operation{
			ID: "replay_delivery", Tag: "deliveries", Addition: true,
			Summary: "Send a push once more",
			Text: "As it was, under the same id, at once. A schedule that a later one has replaced, that was taken " +
				"back, or that is over is not sent (409), nor is a dispatch of which a newer one has taken the place " +
				"for a time that is not over.",
			Answer: Answer{
				Text: "It is on its way.",
				Body: sample[wire.DeliveryResponse](`{
				"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33",
				"kind": "schedule",
				"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"endpoint": "schedule",
				"generation": 3,
				"status": "accepted",
				"callback_status": "ACCEPTED",
				"num_attempts": 1,
				"created_at": "2026-01-15T22:00:01Z",
				"finished_at": "2026-01-15T22:00:01.25Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},
}
