-- Whether the check before sending locked half-hours of a battery's plan, which would have passed a limit of its site.
-- +goose Up
ALTER TABLE battery_plan ADD COLUMN refused BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX battery_plan_refused ON battery_plan (org_id) WHERE refused;
