-- The power that a battery's plan expects of each half-hour, for the fleet's curve.
-- +goose Up

-- The Unix time of stored_at, and the watts of each half-hour from it on, as planned; positive fills the battery. Empty until it is
-- planned again; of another time if a program that does not know it has planned since.
ALTER TABLE battery_plan ADD COLUMN planned_w TEXT NOT NULL DEFAULT '';
