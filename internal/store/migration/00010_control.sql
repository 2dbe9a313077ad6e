-- What is told of an asset that charges, its plug sessions, its schedules, and the work of
-- planning a whole fleet anew. Sessions and schedules outlive their asset: money refers to
-- them.
-- +goose Up

-- The client's latest word on each asset, kept whether or not anything is plugged in.
CREATE TABLE inputs (
    asset_id        UUID PRIMARY KEY REFERENCES asset (id) ON DELETE CASCADE,
    org_id          UUID NOT NULL,
    need_wh         BIGINT,  -- null if no intent was ever sent
    ready_by        BIGINT,
    ready_by_offset BIGINT,  -- seconds ahead of UTC, as ready_by was written
    ready_by_local  BIGINT,  -- seconds after midnight; null if not told
    estimated       BOOLEAN, -- null if not told
    may_charge_peak BOOLEAN,
    mode            TEXT,
    intent_at       BIGINT,
    off_peak        TEXT,    -- null if no tariff was ever sent
    zone            TEXT,
    tariff_type     TEXT,
    tariff_at       BIGINT,
    charge_now_from BIGINT,  -- null unless asked for
    charge_now_to   BIGINT
);

-- Every event as it came in.
CREATE TABLE asset_event (
    id       UUID PRIMARY KEY,
    org_id   UUID NOT NULL,
    asset_id UUID NOT NULL,
    kind     TEXT NOT NULL,
    told     TEXT NOT NULL, -- JSON
    at       BIGINT NOT NULL
);
CREATE INDEX asset_event_asset ON asset_event (asset_id, id);

-- A wave goes through the open sessions in the order of their assets, which is the outbox's
-- too; what it changes is in no index.
CREATE TABLE session (
    asset_id       UUID NOT NULL,
    number         BIGINT NOT NULL, -- of the asset's sessions, rising from 1
    id             UUID NOT NULL UNIQUE,
    org_id         UUID NOT NULL,
    site_id        UUID NOT NULL,
    vehicle_w      BIGINT,          -- null if never told
    plugged_in_at  BIGINT NOT NULL,
    plugged_out_at BIGINT,          -- null while open
    ready_by       BIGINT,          -- null until something was planned
    generation     BIGINT NOT NULL, -- of the newest schedule of the asset, 0 before the first
    event_id       UUID,            -- of the newest schedule of the session
    market_at      BIGINT,          -- when a market move last changed the schedule
    due_at         BIGINT,          -- when to plan it anew without an event; null for never
    due_for        TEXT,            -- the cause of that: market or inputs
    PRIMARY KEY (asset_id, number)
) CLUSTERED;
CREATE UNIQUE INDEX session_open ON session (org_id, asset_id) WHERE plugged_out_at IS NULL;
CREATE INDEX session_due ON session (org_id, due_for, due_at) WHERE plugged_out_at IS NULL AND due_at IS NOT NULL;

-- Market prices as plans were made on them, shared by all plans of the same half-hour. The
-- id is the beginning of the content's SHA-256.
CREATE TABLE curve (
    id      UUID PRIMARY KEY,
    from_at BIGINT NOT NULL,
    prices  TEXT NOT NULL -- millionths of a pound per MWh, a half-hour each; empty is missing
);

-- Every schedule ever committed, with what it was made from, so that it can be explained.
-- It has no index but its key, which rises: a wave of a whole fleet only appends. A session
-- names its newest schedule, and each schedule the one before.
CREATE TABLE schedule (
    event_id        UUID PRIMARY KEY,
    org_id          UUID NOT NULL,
    asset_id        UUID NOT NULL,
    session_id      UUID NOT NULL,
    generation      BIGINT NOT NULL,
    cause           TEXT NOT NULL,
    made_at         BIGINT NOT NULL,
    from_at         BIGINT NOT NULL, -- of the first step
    to_at           BIGINT NOT NULL, -- of the last step, after which the asset is free
    steps           TEXT NOT NULL,   -- seconds x watts each
    curve_id        UUID,
    ready_by        BIGINT NOT NULL,
    need_wh         BIGINT NOT NULL, -- as asked for
    delivered_wh    BIGINT NOT NULL, -- of it, when the plan was made
    count_from      BIGINT NOT NULL, -- since when it counts
    power_w         BIGINT NOT NULL,
    running         BOOLEAN NOT NULL, -- whether the asset charged when the plan was made
    may_charge_peak BOOLEAN NOT NULL,
    mode            TEXT NOT NULL,
    charge_now_from BIGINT,
    charge_now_to   BIGINT,
    off_peak        TEXT NOT NULL,
    zone            TEXT NOT NULL,
    tariff_type     TEXT NOT NULL,
    origins         TEXT NOT NULL,   -- where each input came from
    before_id       UUID,            -- the schedule of the same session that this one replaced
    value           BIGINT NOT NULL  -- of its push, in micro-pounds: what it saves, or that somebody waits
);

-- Pauses put into clients' own schedules.
CREATE TABLE pause (
    id       UUID PRIMARY KEY,
    org_id   UUID NOT NULL,
    asset_id UUID NOT NULL,
    site_id  UUID NOT NULL,
    from_at  BIGINT NOT NULL,
    to_at    BIGINT NOT NULL,
    saved    BIGINT NOT NULL, -- micro-pounds at the market prices known then
    made_at  BIGINT NOT NULL
);
CREATE INDEX pause_asset ON pause (asset_id, from_at);

-- The publications that an organisation's fleet has been planned on, and the parts of the
-- fleet that are still to be done for the newest of them.
CREATE TABLE wave (
    org_id         UUID NOT NULL,
    publication_id UUID NOT NULL,
    begun_at       BIGINT NOT NULL,
    PRIMARY KEY (org_id, publication_id)
);

CREATE TABLE wave_part (
    org_id     UUID NOT NULL,
    from_asset UUID NOT NULL,
    to_asset   UUID NOT NULL, -- the last one of the part
    leased_to  BIGINT NOT NULL DEFAULT 0, -- until then someone is at it, by the true clock
    PRIMARY KEY (org_id, from_asset)
);
