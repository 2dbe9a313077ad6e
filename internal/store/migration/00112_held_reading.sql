-- Readings that no device or connection can have measured. They count nowhere until an
-- operator releases them.
-- +goose Up

CREATE TABLE held_reading (
    id          UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    asset_id    UUID NOT NULL,
    label       SMALLINT NOT NULL,
    from_at     BIGINT NOT NULL,
    to_at       BIGINT NOT NULL,
    value       BIGINT NOT NULL,  -- millionths of the label's unit
    reason      TEXT NOT NULL,    -- one word
    detail      TEXT NOT NULL,    -- as the client was told
    held_at     BIGINT NOT NULL,
    decision    TEXT NOT NULL DEFAULT '', -- 'released', 'meter_replaced' or 'discarded'
    decided_at  BIGINT,
    UNIQUE (asset_id, label, from_at, to_at)
);
CREATE INDEX held_reading_list ON held_reading (org_id, decision, id);

-- Where a register began anew: its meter was replaced or reset. The reading at the instant is
-- the first of the new count, and no difference is taken across it.
CREATE TABLE register_reset (
    asset_id UUID NOT NULL,
    label    SMALLINT NOT NULL,
    at       BIGINT NOT NULL,
    known_at BIGINT NOT NULL,
    PRIMARY KEY (asset_id, label, at)
) CLUSTERED;
