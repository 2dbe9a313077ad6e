package api

import (
	"flexd/internal/wire"
)

// offersRoutes are the operations of offers.
var offersRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/grid/offers",
		Role:    toRead,
		handle:  (*Server).offers,
		Operation: &Operation{
			ID: "list_offers", Tag: "grid", Addition: true,
			Summary: "Offers, the newest first",
			Text:    "What was offered, what was accepted of it, and what came of the offers whose day is over.",
			Answer: Answer{
				Text: "A page.",
				CSV:  true,
				Body: sample[wire.OfferPage](`{"offers": [], "num_total": 0, "num_judged": 0, "num_kept": 0}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/offers",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).offer,
		Operation: &Operation{
			ID: "make_offer", Tag: "grid", Addition: true,
			Summary: "Offer what the fleet can do in a window",
			Text: "Of today, still to come, or of tomorrow: the powers that can be offered, the surer the less, " +
				"each with the price of the last of it, which is what moving past stays would cost at the " +
				"window's prices, or calling a home battery by its plan. An offer with the confidence that is asked for is kept. With `dry_run=true` " +
				"nothing is. Where nothing can be offered it is 409.",
			Body: sample[wire.OfferRequest](`{
				"service": "dfs",
				"direction": "down",
				"start_timestamp": "2026-01-16T17:00:00Z",
				"end_timestamp": "2026-01-16T19:00:00Z",
				"confidence": 90
			}`),
			Answer: Answer{
				Text: "What can be offered, and the offer.",
				Body: sample[wire.OfferStack](`{
				"at": "2026-01-15T18:00:00Z",
				"num_days": 180,
				"rungs": [{"confidence": 90, "power_mw": 0.327, "price_gbp_per_mwh": 41.2}],
				"reliability": {
					"kind": "turn_down",
					"num_days": 90,
					"kept": [0.501, 0.802, 0.905, 0.951, 0.989],
					"volume": [0.979, 0.716, 0.588, 0.483, 0.318]
				}
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/offers/{id}/accept",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).acceptOffer,
		Operation: &Operation{
			ID: "accept_offer", Tag: "grid", Addition: true,
			Summary: "An offer was accepted: it becomes an instruction",
			Text: "Of all of it, or of so much. The offer and the instruction are kept in one transaction, and the " +
				"answer is the instruction's preview. With `dry_run=true` nothing is kept or sent.",
			Body: sample[wire.OfferAcceptRequest](`{"power_kw": 250, "reason": "accepted in the auction"}`),
			Answer: Answer{
				Text: "The instruction.",
				Body: sample[wire.InstructionPreview](""),
			},
			Problems: []Problem{malformed, notFound},
		},
	},
}
