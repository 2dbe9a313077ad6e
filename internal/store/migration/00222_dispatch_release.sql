-- Whether an asset went back to what it did before, once its dispatch was over: when that is looked
-- at next, what was found, and how often it was sent the dispatch again.
-- +goose Up
ALTER TABLE dispatch_asset ADD COLUMN release_at BIGINT; -- null: not looked at any more
ALTER TABLE dispatch_asset ADD COLUMN release TEXT NOT NULL DEFAULT ''; -- unknown, done, missing; empty: not looked at yet
ALTER TABLE dispatch_asset ADD COLUMN release_tries INTEGER NOT NULL DEFAULT 0;
CREATE INDEX dispatch_release ON dispatch_asset (org_id, release_at) WHERE release_at IS NOT NULL;
CREATE INDEX dispatch_not_released ON dispatch_asset (org_id, event_id) WHERE release = 'missing';
