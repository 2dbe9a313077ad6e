-- Products of a system operator or of a distribution operator, imported as events: who is invited, who takes part, and
-- the instruction that each became.
-- +goose Up
CREATE TABLE grid_product (
    id             UUID PRIMARY KEY,
    org_id         UUID NOT NULL,
    reference      TEXT NOT NULL,    -- the buyer's
    service        TEXT NOT NULL,    -- dfs, dno, …
    group_name     TEXT NOT NULL,    -- constraint group; empty for any
    gsp_group      TEXT NOT NULL,    -- empty for any
    from_at        BIGINT NOT NULL,
    to_at          BIGINT NOT NULL,
    change_w       BIGINT NOT NULL,  -- against the plan, negative for less
    price          BIGINT NOT NULL,  -- micro-pounds per MWh of what is delivered
    availability   BIGINT NOT NULL,  -- micro-pounds per MW and hour of the volume
    baseline       TEXT NOT NULL,    -- by which it is settled; empty: the terms'
    opt_out        BOOLEAN NOT NULL, -- takes part who does not refuse; else who accepts
    answer_by      BIGINT NOT NULL,
    who            TEXT NOT NULL,
    made_at        BIGINT NOT NULL,
    send_at        BIGINT,           -- when it becomes an instruction; null if it did, or will not
    withdrawn_at   BIGINT,
    withdrawn_by   TEXT NOT NULL DEFAULT '',
    instruction_id UUID,             -- that it became
    problem        TEXT NOT NULL DEFAULT '' -- why it did not
);
CREATE UNIQUE INDEX grid_product_reference ON grid_product (org_id, reference);
CREATE INDEX grid_product_from ON grid_product (org_id, from_at, id);
CREATE INDEX grid_product_send ON grid_product (send_at, org_id) WHERE send_at IS NOT NULL;
CREATE TABLE product_site (
    product_id  UUID NOT NULL,
    site_id     UUID NOT NULL,
    org_id      UUID NOT NULL,
    event_id    UUID NOT NULL,   -- of the newest message on it
    invited_at  BIGINT NOT NULL,
    takes_part  BOOLEAN NOT NULL,
    answered_at BIGINT,          -- null while nobody answered
    answered_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (product_id, site_id)
);
CREATE UNIQUE INDEX product_site_event ON product_site (event_id);
CREATE INDEX product_site_site ON product_site (org_id, site_id);
ALTER TABLE instruction ADD COLUMN product_id UUID;
