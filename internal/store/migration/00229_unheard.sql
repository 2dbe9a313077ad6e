-- What has not been heard of assets, kept where it is heard, so that nobody looks through all of them.
-- +goose Up

-- Chargers whose client took the schedule in force and has not reached the charger yet.
CREATE TABLE unreached (
    asset_id UUID PRIMARY KEY,
    org_id   UUID NOT NULL,
    event_id UUID NOT NULL,   -- the latest schedule that the client took
    since_at BIGINT NOT NULL  -- by the organisation's clock
);
CREATE INDEX unreached_since ON unreached (org_id, since_at);

-- The newest reading of an asset, to some hours, and when it is too late for the next. Steady ones
-- come all the time; those of a charger are due once a car was plugged in.
CREATE TABLE reading_due (
    asset_id UUID NOT NULL,
    steady   BOOLEAN NOT NULL,
    org_id   UUID NOT NULL,
    at       BIGINT NOT NULL,
    due_at   BIGINT,          -- null: none is due
    PRIMARY KEY (asset_id, steady)
);
CREATE INDEX reading_due_at ON reading_due (org_id, due_at) WHERE due_at IS NOT NULL;
