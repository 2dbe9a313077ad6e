-- A state of charge that has come in since a battery's plan was held against it.
-- +goose Up

ALTER TABLE battery_plan ADD COLUMN read_at BIGINT;    -- when it came in, by the organisation's clock
ALTER TABLE battery_plan ADD COLUMN strayed_at BIGINT; -- when the battery was last planned anew for being far off
CREATE INDEX battery_plan_read ON battery_plan (org_id) WHERE read_at IS NOT NULL;
