-- The assets that are excluded from control are counted again and again, and are few.
-- +goose Up
CREATE INDEX asset_excluded ON asset (excluded_at) WHERE excluded_at IS NOT NULL;
