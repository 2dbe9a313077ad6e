-- Which source's price an organisation uses for what, from an instant on. A row is never
-- taken back for a half-hour that has begun.
-- +goose Up
CREATE TABLE price_source (
    name     TEXT PRIMARY KEY,
    added_at BIGINT NOT NULL -- when it first published, by the true clock
);
INSERT INTO price_source (name, added_at) SELECT source, min(fetched_at) FROM publication GROUP BY source;

CREATE TABLE price_role (
    org_id  UUID NOT NULL REFERENCES org (id),
    role    TEXT NOT NULL,   -- 'planning', 'contract' or 'settlement'
    from_at BIGINT NOT NULL,
    source  TEXT NOT NULL,   -- empty: by rule again
    set_at  BIGINT NOT NULL,
    PRIMARY KEY (org_id, role, from_at)
);
