package api

import (
	"flexd/internal/wire"
)

// sampleAssetResponse is one as several operations show it.
const sampleAssetResponse = `{
	"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
	"external_id": "charger-001",
	"type": "charger",
	"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
	"properties": {"power_kw": 7.4}
}`

// assetsRoutes are the operations of assets.
var assetsRoutes = []Route{
	{
		Method:  "GET",
		Pattern: "/entities/asset",
		Role:    toRead,
		handle:  (*Server).listAssets,
		Operation: &Operation{
			ID: "get_assets_entities_asset_get", Tag: "assets",
			Summary: "List assets",
			Text:    "In the order of their making.",
			Answer: Answer{
				Text: "The page.",
				Body: sample[wire.AssetResponsePage](`{
				"assets": [
					{
						"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
						"external_id": "charger-001",
						"type": "charger",
						"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
						"properties": {"power_kw": 7.4}
					}
				],
				"total_num_assets": 1,
				"total_num_pages": 1,
				"page_number": 1
			}`),
			},
		},
	},

	{
		Method:  "POST",
		Pattern: "/entities/asset",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).createAsset,
		Operation: &Operation{
			ID: "create_asset_entities_asset_post", Tag: "assets",
			Summary: "Register an asset",
			Text:    "At a site that is registered.",
			Body: sample[wire.AssetRequest](`{
				"external_id": "charger-001",
				"type": "charger",
				"asset_model": "zappi",
				"installation_date": "2025-06-15",
				"properties": {"power_kw": 7.4},
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"serial_number": "Z-20114"
			}`),
			Answer: Answer{
				Text: "The new asset.",
				Body: sample[wire.AssetResponse](sampleAssetResponse),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/external-id/{external_id}",
		Role:      toRead,
		Component: true,
		handle:    (*Server).assetByExternalID,
		Operation: &Operation{
			ID:      "get_asset_by_external_id_entities_asset_external_id__external_id__get",
			Tag:     "assets",
			Summary: "The asset of an external id",
			Answer: Answer{
				Text: "The asset.",
				Body: sample[wire.AssetResponse](sampleAssetResponse),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:    "GET",
		Pattern:   "/entities/asset/{asset_id}",
		Role:      toRead,
		Component: true,
		handle:    (*Server).getAsset,
		Operation: &Operation{
			ID: "get_asset_entities_asset__asset_id__get", Tag: "assets",
			Summary: "One asset",
			Answer: Answer{
				Text: "The asset.",
				Body: sample[wire.AssetResponse](sampleAssetResponse),
			},
			Problems: []Problem{notFound},
		},
	},

	{
		Method:  "PATCH",
		Pattern: "/entities/asset/{asset_id}",
		Role:    toWrite,
		Limit:   mib,
		handle:  (*Server).updateAsset,
		Operation: &Operation{
			ID: "update_asset_entities_asset__asset_id__patch", Tag: "assets",
			Summary: "Change an asset",
			Text:    "Its properties, model and date of installation; type, site and external id stay.",
			Body: sample[wire.AssetUpdateRequest](
				`{"properties": {"power_kw": 11}, "asset_model": "zappi", "installation_date": "2025-06-15"}`,
			),
			Answer: Answer{
				Text: "The asset as it is now.",
				Body: sample[wire.AssetResponse](`{
				"id": "b2c3d4e5-f6a7-8901-bcde-f23456789012",
				"external_id": "charger-001",
				"type": "charger",
				"site_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
				"properties": {"power_kw": 11}
			}`),
			},
			Problems: []Problem{malformed, notFound},
		},
	},

	{
		Method:  "DELETE",
		Pattern: "/entities/asset/{asset_id}",
		Role:    toWrite,
		handle:  (*Server).deleteAsset,
		Operation: &Operation{
			ID: "delete_asset_entities_asset__asset_id__delete", Tag: "assets",
			Summary:  "Delete an asset",
			Text:     "Scheduling stops and a running session ends.",
			Answer:   Answer{Text: "It is gone.", Empty: true},
			Problems: []Problem{notFound},
		},
	},
}
