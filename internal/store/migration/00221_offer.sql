-- Offers of a fleet's flexibility: what was offered with what confidence, and what was accepted.
-- +goose Up
CREATE TABLE offer (
    id             UUID PRIMARY KEY,
    org_id         UUID NOT NULL,
    service        TEXT NOT NULL,   -- wholesale, cm, dno, dfs, lcm, sffr, other
    group_name     TEXT NOT NULL,   -- constraint group; empty for any
    gsp_group      TEXT NOT NULL,   -- empty for any
    from_at        BIGINT NOT NULL,
    to_at          BIGINT NOT NULL,
    up             BOOLEAN NOT NULL, -- to draw more; else less
    power_w        BIGINT NOT NULL,
    confidence     BIGINT NOT NULL, -- of 100 times, how often at least this is to come
    price          BIGINT NOT NULL, -- micro-pounds per MWh that it costs
    who            TEXT NOT NULL,
    made_at        BIGINT NOT NULL,
    accepted_at    BIGINT,          -- null while it is not accepted
    accepted_w     BIGINT,
    instruction_id UUID             -- that it became
);
CREATE INDEX offer_org ON offer (org_id, id);
