package api

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// rewardsRoutes are the operations of rewards.
var rewardsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/rewards/{site_id}/info",
		Role:    flex.Rewards,
		handle:  (*Server).balance,
		Operation: &Operation{
			ID: "get_balance_info_rewards__site_id__info_get", Tag: "rewards",
			Summary: "A site's balance",
			Answer: Answer{
				Text: "The balance.",
				Body: sample[wire.BalanceInfoResponse](`{
				"current_balance_pence": 1250,
				"total_earnings_pence": 2250,
				"minimum_withdrawal_threshold_pence": 1000,
				"withdrawal_min_wait_days": 0,
				"can_withdraw": true
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/rewards/{site_id}/url/balance",
		Role:    flex.Rewards,
		handle:  (*Server).balanceURL,
		Operation: &Operation{
			ID:      "get_rewards_balance_withdrawal_url_rewards__site_id__url_balance_get",
			Tag:     "rewards",
			Summary: "The address of the end user's withdrawal page",
			Text:    "Good for 60 minutes, as often as wanted.",
			Answer: Answer{
				Text: "The address.",
				Body: sample[wire.BalanceWithdrawalURLResponse](`{
				"balance_withdrawal_url": "https://flexd.example/money/t/8Kx…",
				"url_expiry_timestamp": "2026-01-15T11:30:00Z"
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/rewards/{site_id}/transactions",
		Role:    flex.Rewards,
		handle:  (*Server).transactions,
		Operation: &Operation{
			ID:      "get_transaction_history_rewards__site_id__transactions_get",
			Tag:     "rewards",
			Summary: "A site's transactions",
			Text:    "Newest first.",
			Answer: Answer{
				Text: "The transactions.",
				Body: sample[wire.TransactionDataResponse](`{
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"transactions": [
					{
						"transaction_id": "c3d4e5f6-a7b8-4901-8cde-f34567890123",
						"transaction_type": "flex event",
						"credit_pence": 37,
						"start_time": "2026-01-15T17:00:00Z",
						"end_time": "2026-01-15T17:30:00Z",
						"settlement_date": "2026-02-12",
						"flex_kwh": -3.7,
						"creditable_kwh": 3.7,
						"credit_rate_pence_per_kwh": 10,
						"plug_session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
						"vehicle": {"model_name": "Example EV"}
					}
				],
				"total_count": 1,
				"is_below_withdrawal_minimum": true,
				"days_until_minimum_wait_time_met": 3
			}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "GET",
		Pattern: "/rewards/{site_id}/statement",
		Role:    flex.Rewards,
		handle:  (*Server).statement,
		Operation: &Operation{
			ID: "get_statement", Tag: "rewards", Addition: true,
			Summary: "What a site earned, when and why",
			Text: "Of some days, of a month or of a tax year; without any the current month. At most 366 days. " +
				"With its half-hours, prices and terms each line can be worked out again (`rounding_rule`), and " +
				"each month with what is carried into it, credited, carried on and lapsed; no energy counts " +
				"twice in a sum over `flex_kwh` and `creditable_kwh` of the lines, or over `change_kwh` of the " +
				"half-hours.",
			Answer: Answer{
				Text: "The statement.",
				CSV:  true,
				Body: sample[wire.StatementResponse](`{
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"from": "2026-01-01",
				"to": "2026-01-31",
				"number": "a1b2c3d4-e5f6-7890-abcd-ef1234567890/2026-01-01/2026-01-31",
				"made_at": "2026-02-12T09:00:00+00:00",
				"payer": {
					"name": "Acme Ltd",
					"address": "1 High Street, London",
					"contact": "help@acme.example"
				},
				"customer": {"address": "1 Elm Grove", "postcode": "SW1A 1AA"},
				"rounding_rule": "rounded once to a whole penny",
				"opening_balance_pence": 0,
				"closing_balance_pence": 37,
				"totals": {
					"earned_pence": 37,
					"other_pence": 0,
					"withdrawn_pence": 0,
					"flex_kwh": -3.7,
					"less_kwh": 3.7,
					"more_kwh": 0,
					"creditable_kwh": 0
				},
				"months": [
					{
						"month": "2026-01",
						"shares_pence": 37,
						"floored_pence": 0,
						"credit_pence": 37,
						"carried_in_pence": 0,
						"lapsed_pence": 0,
						"sum_pence": 37,
						"standard_error_pence": 8,
						"certainty": 2,
						"carry_months": 12,
						"threshold_pence": 16,
						"carried_out_pence": 0,
						"note": "The events of January 2026 come to 37 p. Their standard error is 8.000 p, and what is above 2 times that, 16.000 p, is credited: 37 p.",
						"events": [
							{
								"flex_event_id": "b2c3d4e5-f6a7-4890-9bcd-ef2345678901",
								"start_time": "2026-01-15T17:00:00+00:00",
								"end_time": "2026-01-15T17:30:00+00:00",
								"flex_kwh": -3.7,
								"gross_pence": 74,
								"share_pence": 37,
								"credited_pence": 37,
								"standard_error_pence": 8
							}
						]
					}
				],
				"lines": [
					{
						"transaction_id": "c3d4e5f6-a7b8-4901-8cde-f34567890123",
						"transaction_type": "flex event",
						"credit_pence": 37,
						"start_time": "2026-01-15T17:00:00Z",
						"end_time": "2026-01-15T17:30:00Z",
						"settlement_date": "2026-02-12",
						"flex_kwh": -3.7,
						"plug_session_id": "d4e5f6a7-b8c9-4012-9def-456789012345",
						"vehicle": {"model_name": "Example EV"},
						"recorded_at": "2026-01-15T18:00:00+00:00",
						"flex_event_id": "b2c3d4e5-f6a7-4890-9bcd-ef2345678901",
						"balance_pence": 37,
						"cause": "3.7 kWh less than usual, 15 January, 17:00 to 17:30",
						"working": [
							"It was worth 74 p: the kWh of each half-hour times its price.",
							"By your share of 50 % that is 37 p for you, in whole pence."
						],
						"provisional": true,
						"label": "boundary_import_kw",
						"calculation": {
							"user_share": 0.5,
							"loss_factor": 1,
							"paid_part": 1,
							"carried_pence": 0,
							"due_pence": 37,
							"earlier_pence": 0,
							"earlier_kwh": 0,
							"rounding": "half_away_from_zero",
							"losses_passed_on": false,
							"standard_error_pence": 8,
							"month": {
								"month": "2026-01",
								"others_pence": 0,
								"others_credited_pence": 0,
								"carried_in_pence": 0,
								"sum_pence": 37,
								"standard_error_pence": 8,
								"certainty": 2,
								"threshold_pence": 16,
								"credit_pence": 37,
								"later_pence": 0
							}
						},
						"periods": [
							{
								"start_timestamp": "2026-01-15T17:00:00+00:00",
								"baseline_kwh": 3.7,
								"metered_kwh": 0,
								"flex_kwh": -3.7,
								"change_kwh": -3.7,
								"standard_error_kwh": 0.8,
								"price_pence_per_kwh": 20,
								"price_source": "elexon-mid",
								"price_role": "settlement",
								"price_imported_at": "2026-01-15T16:05:00Z",
								"publication_id": "e5f6a7b8-c9d0-4123-8ef0-567890123456",
								"asset_id": "f6a7b8c9-d0e1-4234-9f01-678901234567"
							}
						]
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
