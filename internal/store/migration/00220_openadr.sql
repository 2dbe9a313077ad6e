-- OpenADR 3.1: what an organisation's dispatchers and sites' controllers keep at flexd's server, and
-- what subscribers are to be notified of.
-- +goose Up

CREATE TABLE adr_object (
    id          UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    kind        TEXT NOT NULL,   -- PROGRAM, EVENT, REPORT, SUBSCRIPTION, VEN, RESOURCE
    name        TEXT NOT NULL,   -- of a program, a VEN or a resource; empty for others
    client_id   TEXT NOT NULL,   -- whose it is; empty for programs and events
    client_name TEXT NOT NULL,   -- of a report or subscription
    program_id  UUID,            -- of an event, a report or a subscription
    event_id    UUID,            -- of a report; the event may be gone
    ven_id      UUID,            -- of a resource
    objects     TEXT NOT NULL,   -- that a subscription is for: blanks around and between them
    ends_at     BIGINT,          -- when an event is over; null if it is not known, or never
    document    TEXT NOT NULL,   -- JSON, as the client sent it
    sealed      BYTES,           -- the bearer tokens of a subscription's webhooks
    created_at  BIGINT NOT NULL,
    modified_at BIGINT NOT NULL
);
CREATE INDEX adr_object_kind ON adr_object (org_id, kind, id);
CREATE UNIQUE INDEX adr_object_name ON adr_object (org_id, kind, name) WHERE kind IN ('PROGRAM', 'VEN');
CREATE UNIQUE INDEX adr_object_client ON adr_object (org_id, client_id) WHERE kind = 'VEN';
CREATE UNIQUE INDEX adr_object_resource ON adr_object (ven_id, name) WHERE kind = 'RESOURCE';
CREATE INDEX adr_object_program ON adr_object (program_id) WHERE program_id IS NOT NULL;

CREATE TABLE adr_target (
    object_id UUID NOT NULL,
    target    TEXT NOT NULL,
    PRIMARY KEY (object_id, target)
) CLUSTERED;
CREATE INDEX adr_target_name ON adr_target (target);

-- What is to be sent to a subscriber, once.
CREATE TABLE adr_notice (
    id              UUID PRIMARY KEY,
    org_id          UUID NOT NULL,
    subscription_id UUID NOT NULL,
    url             TEXT NOT NULL,
    body            TEXT NOT NULL, -- empty once it was sent or given up
    queued_at       BIGINT NOT NULL,
    sent_at         BIGINT,
    lost_at         BIGINT,        -- when it was given up
    tries           INTEGER NOT NULL,
    error           TEXT NOT NULL  -- of the latest attempt
);
CREATE INDEX adr_notice_old ON adr_notice (queued_at);
