-- What another party's OpenADR server asked to be reported of an event there, and which of its reports it has.
-- +goose Up
CREATE TABLE adr_telemetry (
    program_id UUID NOT NULL,
    remote_id  TEXT NOT NULL,    -- the event's id there
    place      BIGINT NOT NULL,  -- of the report among those that the event asks for
    org_id     UUID NOT NULL,
    modified   TEXT NOT NULL,    -- of the event that it was made for, as in adr_mirror
    report_id  TEXT NOT NULL,    -- of the report there; empty until it is taken
    sent       TEXT NOT NULL,    -- a digest of what was sent
    again_at   BIGINT,           -- when it is made again, as meters are read late; null for never
    PRIMARY KEY (program_id, remote_id, place)
) CLUSTERED;
