-- The dispatches of an asset that are not over by an instant are found without reading all that it ever had: each plan of a battery asks for
-- them, and dispatches are kept without limit.
-- +goose Up
-- The dispatch's to_at. The default is further than any: a version that does not know this leaves it so, and its rows are read
-- with those that are not over. So are those of an organisation that is on its way to another database: its records are fenced, and to
-- change one would fail the upgrade.
ALTER TABLE dispatch_asset ADD COLUMN over_at BIGINT NOT NULL DEFAULT 9000000000000000;
UPDATE dispatch_asset SET over_at = (SELECT d.to_at FROM dispatch d WHERE d.event_id = dispatch_asset.event_id)
    WHERE EXISTS (SELECT 1 FROM dispatch d WHERE d.event_id = dispatch_asset.event_id)
        AND NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = dispatch_asset.org_id);
CREATE INDEX dispatch_asset_over ON dispatch_asset (asset_id, over_at);
