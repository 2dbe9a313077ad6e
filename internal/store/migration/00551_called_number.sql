-- How often a site was called is the number of its last call, and not counted over all of them each time.
-- +goose Up

-- Which call of its site this is a part of, the first is 1; 0 of a dispatch of named batteries, which is none.
ALTER TABLE called_asset ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
UPDATE called_asset SET number = r.number
    FROM (SELECT instruction_id, asset_id, dense_rank() OVER (PARTITION BY org_id, site_id ORDER BY instruction_id) AS number
        FROM called_asset WHERE NOT dispatched) r
    WHERE r.instruction_id = called_asset.instruction_id AND r.asset_id = called_asset.asset_id;
CREATE INDEX called_asset_number ON called_asset (org_id, site_id, number);
