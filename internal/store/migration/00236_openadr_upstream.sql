-- Servers of other parties (a utility's VTN) of which the organisation is a VEN.
-- +goose Up

-- A program of such a server; its events are kept as those of a program of the organisation's own.
CREATE TABLE adr_upstream (
    program_id UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    name       TEXT NOT NULL,    -- also of the program here, and of the VEN there
    url        TEXT NOT NULL,
    token_url  TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    sealed     BYTES NOT NULL,   -- the client's secret
    remote_id  TEXT NOT NULL,    -- the program's id there
    poll_s     BIGINT NOT NULL,
    silence_s  BIGINT NOT NULL,  -- how long it may not be heard before that is an exception
    made_at    BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,  -- when it is asked next
    heard_at   BIGINT NOT NULL,  -- when it was asked with success; at first, when it was made
    registered BIGINT,           -- since when the VEN is known there
    error      TEXT NOT NULL     -- of the latest attempt
);
CREATE UNIQUE INDEX adr_upstream_name ON adr_upstream (org_id, name);
CREATE INDEX adr_upstream_due ON adr_upstream (due_at);

-- An event there, and the one that is kept of it here.
CREATE TABLE adr_mirror (
    program_id  UUID NOT NULL,
    remote_id   TEXT NOT NULL,
    org_id      UUID NOT NULL,
    event_id    UUID NOT NULL,
    modified    TEXT NOT NULL,   -- when it was changed there, as the server writes it
    report_id   TEXT NOT NULL,   -- of the report there; empty until it is sent
    reported_at BIGINT,          -- when the report that was sent was written here
    PRIMARY KEY (program_id, remote_id)
) CLUSTERED;
