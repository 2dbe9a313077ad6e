-- What a battery is asked for by dispatches that are not of its own plan.
-- +goose Up

-- When the last of them ends, by the organisation's clock; null: there never was one.
ALTER TABLE battery_plan ADD COLUMN asked_to BIGINT;
-- The dispatch is of its battery's own plan, which an instruction may have changed; false: an operator's. Of those from before it is not
-- told apart: plans do not go by them.
ALTER TABLE dispatch ADD COLUMN own BOOLEAN NOT NULL DEFAULT TRUE;
