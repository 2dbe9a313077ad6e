package api

import (
	"flexd/internal/wire"
)

// sampleProduct is one as several operations show it.
const sampleProduct = `{
	"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
	"reference": "DFS-2026-01-15-A",
	"state": "open",
	"service": "dfs",
	"direction": "down",
	"start_timestamp": "2026-01-15T17:30:00Z",
	"end_timestamp": "2026-01-15T19:00:00Z",
	"volume_kw": 1000,
	"price_gbp_per_mwh": 250,
	"baseline": "mid_8_of_10",
	"participation": "opt_in",
	"answer_by": "2026-01-15T17:00:00Z",
	"who": "credential acme",
	"made_at": "2026-01-14T15:00:00Z",
	"num_invited": 480,
	"num_answered": 310,
	"num_take_part": 290
}`

const sampleProductReport = `{
	"product": ` + sampleProduct + `,
	"asked_kwh": 1500,
	"flex_kwh": 0,
	"num_events": 0,
	"num_waiting": 0,
	"delivered": 0,
	"utilisation_gbp": 0,
	"availability_gbp": 0,
	"sites": [
		{
			"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
			"invited_at": "2026-01-14T15:00:00Z",
			"takes_part": true,
			"answered_at": "2026-01-14T18:20:00Z",
			"answered_by": "household"
		}
	]
}`

const sampleInvitation = `{
	"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
	"reference": "DFS-2026-01-15-A",
	"state": "open",
	"service": "dfs",
	"direction": "down",
	"start_timestamp": "2026-01-15T17:30:00Z",
	"end_timestamp": "2026-01-15T19:00:00Z",
	"price_gbp_per_mwh": 250,
	"participation": "opt_in",
	"answer_by": "2026-01-15T17:00:00Z",
	"takes_part": true,
	"answered_at": "2026-01-14T18:20:00Z"
}`

// productsRoutes are the operations of products that system and distribution operators buy.
var productsRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/grid/products",
		Role:    toWrite,
		Limit:   2 * mib,
		handle:  (*Server).importProducts,
		Operation: &Operation{
			ID: "import_products", Tag: "grid", Addition: true,
			Summary: "Import products, and invite households",
			Text: "What DFS or a distribution operator buys: a volume in a window, and what it pays. The sites of " +
				"its scope that have a car under control are invited, by a push to the endpoint `invitation`. " +
				"When answers end it becomes an instruction to those who take part. The same reference with the " +
				"same terms changes nothing; with others, until it is sent, everybody is asked again. All are " +
				"taken, or none. With `dry_run=true` nothing is kept or sent.",
			Body: sample[wire.ProductsRequest](`{
				"products": [
					{
						"reference": "DFS-2026-01-15-A",
						"service": "dfs",
						"start_timestamp": "2026-01-15T17:30:00Z",
						"end_timestamp": "2026-01-15T19:00:00Z",
						"volume_kw": 1000,
						"price_gbp_per_mwh": 250,
						"baseline": "mid_8_of_10"
					}
				]
			}`),
			Answer: Answer{
				Text: "What was done of each, or would be.",
				Body: sample[wire.ProductsImported](`{
				"products": [
					{
						"id": "0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f55",
						"reference": "DFS-2026-01-15-A",
						"act": "new",
						"num_invited": 480,
						"answer_by": "2026-01-15T17:00:00Z"
					}
				]
			}`),
			},
			Problems: []Problem{malformed, notFound, conflict},
		},
	},

	{
		Method:  "GET",
		Pattern: "/grid/products",
		Role:    toRead,
		handle:  (*Server).products,
		Operation: &Operation{
			ID: "get_products", Tag: "grid", Addition: true,
			Summary: "Products",
			Text:    "The newest first.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.ProductPage](`{"num_total": 1, "products": [` + sampleProduct + `]}`),
			},
		},
	},

	{
		Method:  "GET",
		Pattern: "/grid/products/{id}",
		Role:    toRead,
		handle:  (*Server).product,
		Operation: &Operation{
			ID: "get_product", Tag: "grid", Addition: true,
			Summary: "A product, who takes part, and what it earned",
			Text: "What was delivered is that of the settled flex events of whom it called. Being available earns its " +
				"price for the volume and window, times what was delivered of it.",
			Answer: Answer{
				Text: "The report.",
				Body: sample[wire.ProductReport](sampleProductReport),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "POST",
		Pattern: "/grid/products/{id}/withdraw",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).withdrawProduct,
		Operation: &Operation{
			ID: "withdraw_product", Tag: "grid", Addition: true,
			Summary: "Withdraw a product",
			Text: "It is not sent, or its instruction is stopped, and who was invited is informed. To withdraw again " +
				"changes nothing.",
			Body: sample[wire.ProductWithdrawRequest](`{"reason": "cancelled by the buyer"}`),
			Answer: Answer{
				Text: "The product.",
				Body: sample[wire.ProductReport](sampleProductReport),
			},
			Problems: []Problem{notFound, conflict},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/site/{site_id}/products",
		Role:      toRead,
		Component: true,
		handle:    (*Server).siteProducts,
		Operation: &Operation{
			ID: "get_site_products", Tag: "sites", Addition: true,
			Summary: "What a site is invited to",
			Text:    "The products that are not over, by when they begin.",
			Answer: Answer{
				Text: "The invitations.",
				Body: sample[wire.Invitations](`{"products": [` + sampleInvitation + `]}`),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:     "PUT",
		Pattern:    "/entities/site/{site_id}/products/{id}",
		Role:       toWrite,
		Component:  true,
		Limit:      mib,
		Repeatable: true,
		handle:     (*Server).answerProduct,
		Operation: &Operation{
			ID: "answer_product", Tag: "sites", Addition: true,
			Summary: "Take part in a product, or not",
			Text: "Accepted until answers end, refused until the window does: the site's cars are then let go at once, " +
				"and what was delivered until then counts.",
			Body: sample[wire.ProductAnswerRequest](`{"takes_part": true}`),
			Answer: Answer{
				Text: "The invitation as it is now.",
				Body: sample[wire.Invitation](sampleInvitation),
			},
			Problems: []Problem{notFound, conflict},
		},
	},
}
