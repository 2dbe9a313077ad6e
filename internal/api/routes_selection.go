package api

import (
	"flexd/internal/wire"
)

// selectionRoutes are the operations on a selection of assets.
var selectionRoutes = []Route{
	{
		Method:  "POST",
		Pattern: "/operations/assets/act",
		Role:    toWrite,
		Limit:   mib,
		InParts: true,
		handle:  (*Server).actOnAssets,
		Operation: &Operation{
			ID: "act_on_assets", Tag: "operations", Addition: true,
			Summary: "Do one thing to many assets",
			Text: "As an operator does to the assets that are ticked in the console: `replan`, `resend`, `release` " +
				"until the next plug-in, `charge-now` (with `minutes`), `end-charge-now`, `ready-by` (with `ready_by_local_time`), " +
				"`exclude` from control and `include` again. With `dry_run=true` it says what would become of each " +
				"asset, and nothing is changed. Each asset is for itself, and one that is refused stops no other. " +
				"Who did it, and what became of each, is kept in the audit log.",
			Body: sample[wire.SelectionRequest](`{
				"action": "charge-now",
				"minutes": 120,
				"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"]
			}`),
			Answer: Answer{
				Text: "What became of each asset.",
				Body: sample[wire.SelectionResult](`{
				"action": "charge-now",
				"done": true,
				"num_possible": 1,
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-17",
						"type": "charger",
						"outcome": "schedule 2: may charge from 18:10 to 20:10"
					}
				]
			}`),
			},
			Problems: []Problem{malformed},
		},
	},

	{
		Method:  "POST",
		Pattern: "/operations/assets/offboard",
		Role:    toWrite,
		Limit:   mib,
		InParts: true,
		handle:  (*Server).offboardAssets,
		Operation: &Operation{
			ID: "offboard_assets", Tag: "operations", Addition: true,
			Summary: "Take assets away for good",
			Text: "What they metered and earned stays. It cannot be undone: ask with `dry_run=true` first, and send " +
				"what that gave as `confirm`. Where another number of assets would be taken away by now, it is 409 and " +
				"none is.",
			Body: sample[wire.OffboardRequest](`{
				"asset_ids": ["b2c3d4e5-f6a7-8901-bcde-f23456789012"],
				"confirm": "offboard 1"
			}`),
			Answer: Answer{
				Text: "What became of each asset.",
				Body: sample[wire.SelectionResult](`{
				"action": "offboard",
				"done": true,
				"num_possible": 1,
				"assets": [
					{
						"asset_id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-17",
						"type": "charger",
						"outcome": "Taken away for good"
					}
				]
			}`),
			},
			Problems: []Problem{conflict},
		},
	},
}
