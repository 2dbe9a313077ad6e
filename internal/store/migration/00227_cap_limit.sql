-- What a distribution operator limits a feeder (constraint group) to for a time.
-- +goose Up

CREATE TABLE cap_limit (
    id         UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    group_name TEXT NOT NULL,
    from_at    BIGINT NOT NULL,
    to_at      BIGINT NOT NULL,
    limit_w    BIGINT NOT NULL, -- the most that is drawn
    source     TEXT NOT NULL,   -- import, or openadr
    order_id   UUID,            -- of an OpenADR event
    made_at    BIGINT NOT NULL
);
CREATE INDEX cap_limit_org ON cap_limit (org_id, to_at);
CREATE INDEX cap_limit_order ON cap_limit (order_id) WHERE order_id IS NOT NULL;

-- The link on which a feeder's limits come, and what binds it when nothing is heard.
CREATE TABLE cap_link (
    org_id     UUID NOT NULL,
    group_name TEXT NOT NULL,
    fallback_w BIGINT NOT NULL,
    silence_s  BIGINT NOT NULL, -- how long nothing may be heard
    heard_at   BIGINT NOT NULL,
    lost_at    BIGINT,          -- since when the fallback binds; null: it does not
    PRIMARY KEY (org_id, group_name)
) CLUSTERED;

-- What the events of a bound program become: instruction, or import_limit.
ALTER TABLE adr_binding ADD COLUMN kind TEXT NOT NULL DEFAULT 'instruction';
