-- A dispatch is a flex event once its time is over: what the battery would have done without
-- the market is kept beside what it was asked for.
-- +goose Up

-- The watts of each half-hour from stored_at on, as planned without market prices.
ALTER TABLE battery_plan ADD COLUMN without_market TEXT NOT NULL DEFAULT '';

-- The same of each half-hour that the dispatch touches; empty for an idle battery.
ALTER TABLE dispatch_asset ADD COLUMN without_market TEXT NOT NULL DEFAULT '';
-- When to look for the flex event; null: done, and for all that was dispatched before this.
ALTER TABLE dispatch_asset ADD COLUMN detect_at BIGINT;
CREATE INDEX dispatch_asset_detect ON dispatch_asset (org_id, detect_at) WHERE detect_at IS NOT NULL;
