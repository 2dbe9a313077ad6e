-- Who runs the house: operators, where they are logged in, and everything that they did.
-- +goose Up

CREATE TABLE operator (
    id          UUID PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    secret_hash BYTES NOT NULL,
    created_at  BIGINT NOT NULL,
    removed_at  BIGINT -- their name stays in the audit log, and stays taken
);

-- Sessions live by the true clock.
CREATE TABLE operator_session (
    hash        BYTES PRIMARY KEY, -- SHA-256 of the cookie
    operator_id UUID NOT NULL REFERENCES operator (id),
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX operator_session_expiry ON operator_session (expires_at);

-- An act is written down before it is done, and how it ended afterwards; one without an end
-- was cut short.
CREATE TABLE audit (
    id       UUID PRIMARY KEY,
    at       BIGINT NOT NULL,
    who      TEXT NOT NULL,            -- an operator's name, or "command line"
    source   TEXT NOT NULL,            -- the address that it came from, if any
    act      TEXT NOT NULL,            -- what was done, as "halt pushes"
    org_id   UUID,                     -- the organisation that it concerned, if one
    subject  TEXT NOT NULL,            -- what it was done to
    detail   TEXT NOT NULL,            -- in words
    outcome  TEXT NOT NULL DEFAULT '', -- "done", or why not; empty until it has ended
    ended_at BIGINT
);
CREATE INDEX audit_who ON audit (who, id);

-- While there is a row, nothing is sent to anybody.
CREATE TABLE halt (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    at     BIGINT NOT NULL,
    who    TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- Readings that were refused, counted by reason and London day of the organisation's clock.
CREATE TABLE refused_reading (
    org_id   UUID NOT NULL,
    day      TEXT NOT NULL,
    label    TEXT NOT NULL,
    reason   TEXT NOT NULL, -- its numbers left out
    count    BIGINT NOT NULL,
    example  TEXT NOT NULL, -- the newest, with its numbers
    asset_id UUID NOT NULL, -- that it was for
    PRIMARY KEY (org_id, day, label, reason)
);
