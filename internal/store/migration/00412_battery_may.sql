-- What a battery may do beside its plan, for what the fleet can do.
-- +goose Up

-- The Unix time of stored_at, and a letter for each half-hour from it on: charge (c), discharge (d), both (b) or neither (-), as its
-- site, feeder, caps and instructions leave it. Empty until it is planned again.
ALTER TABLE battery_plan ADD COLUMN may TEXT NOT NULL DEFAULT '';
