-- What all assets under caps draw together, kept, so that a plug-in need not read what each of them draws.
-- +goose Up

-- When the sums were last made from every asset; null for not yet: whoever needs them makes them.
ALTER TABLE caps ADD COLUMN summed_at BIGINT;

-- What changed since it was counted. Each change has a row of its own, so that one which comes while another is counted is not lost.
CREATE TABLE cap_change (
    org_id   UUID NOT NULL,
    id       UUID NOT NULL,
    asset_id UUID NOT NULL,
    PRIMARY KEY (org_id, id)
);

-- What each asset that is plugged in is counted for.
CREATE TABLE cap_part (
    asset_id   UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    group_name TEXT NOT NULL, -- empty for none
    event_id   UUID,          -- the schedule; null for none
    from_at    BIGINT,
    steps      TEXT NOT NULL, -- as a schedule's; empty for nothing
    power_w    BIGINT NOT NULL,
    running    BOOLEAN NOT NULL,
    until_at   BIGINT         -- when it counts for something else, if nothing happens; null for never
);
CREATE INDEX cap_part_until ON cap_part (org_id, until_at) WHERE until_at IS NOT NULL;

-- The sum of the parts under each cap, in blocks of 240 minutes since 1970.
CREATE TABLE cap_sum (
    org_id     UUID NOT NULL,
    group_name TEXT NOT NULL,   -- empty for the fleet
    block      BIGINT NOT NULL,
    load       TEXT NOT NULL,   -- "60x0 180x7400": so many minutes of so many watts
    starts     TEXT NOT NULL,   -- likewise, the cars that start in each minute
    PRIMARY KEY (org_id, group_name, block)
);
