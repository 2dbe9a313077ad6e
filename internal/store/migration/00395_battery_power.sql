-- The power that a battery's plan expects of each half-hour, for the fleet's curve.
-- +goose Up

-- The watts of each half-hour from stored_at on, as planned; positive fills the battery. Empty until it is planned again.
ALTER TABLE battery_plan ADD COLUMN planned_w TEXT NOT NULL DEFAULT '';
