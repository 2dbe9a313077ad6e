-- Instructions of the grid: a target for a part of a fleet, whom it calls, and what was sent to them.
-- +goose Up
CREATE TABLE instruction (
    id         UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    change_w   BIGINT NOT NULL,    -- against the plan, negative to draw less; 0 if limit_w is set
    limit_w    BIGINT,             -- the most that may be drawn; null for a change
    group_name TEXT NOT NULL,      -- constraint group; empty for any
    gsp_group  TEXT NOT NULL,      -- empty for any
    from_at    BIGINT NOT NULL,
    to_at      BIGINT NOT NULL,
    service    TEXT NOT NULL,      -- wholesale, cm, dno, dfs, lcm, sffr, other
    price      BIGINT NOT NULL,    -- micro-pounds per MWh that the service pays; 0 if it was not said
    reason     TEXT NOT NULL,
    unfair     BOOLEAN NOT NULL,   -- the cheapest are called, whoever was called before
    who        TEXT NOT NULL,
    made_at    BIGINT NOT NULL,
    looked_at  BIGINT NOT NULL,    -- when what is delivered was last compared with the target
    stopped_at BIGINT,
    stopped_by TEXT,
    target     TEXT NOT NULL       -- in each half-hour of it, the watt-seconds that are asked for, by blanks
);
CREATE INDEX instruction_org ON instruction (org_id, to_at);

-- Who was called, with what stood before and what was sent.
CREATE TABLE called_asset (
    instruction_id UUID NOT NULL,
    asset_id       UUID NOT NULL,
    site_id        UUID NOT NULL,
    org_id         UUID NOT NULL,
    called_at      BIGINT NOT NULL,
    released_at    BIGINT,            -- null while it is called
    power_w        BIGINT NOT NULL,
    cost           BIGINT NOT NULL,   -- micro-pounds that the plan costs more
    from_at        BIGINT NOT NULL,   -- of both schedules
    baseline       TEXT NOT NULL,     -- the steps of the schedule that stood
    expected       TEXT NOT NULL,     -- the steps that were sent
    PRIMARY KEY (instruction_id, asset_id)
);
CREATE INDEX called_asset_site ON called_asset (org_id, site_id);
CREATE INDEX called_asset_asset ON called_asset (asset_id);

ALTER TABLE schedule ADD COLUMN closed TEXT; -- time that an instruction has the asset leave out, in seconds since 1970; null for none
