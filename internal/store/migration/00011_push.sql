-- What is to be sent to clients, where to, and what became of it.
-- +goose Up

-- Where an organisation's pushes go: one endpoint for schedules, one for dispatch events.
CREATE TABLE endpoint (
    org_id      UUID NOT NULL REFERENCES org (id),
    name        TEXT NOT NULL,
    id          UUID NOT NULL,
    url         TEXT NOT NULL,
    headers     TEXT NOT NULL,
    secret      TEXT NOT NULL,
    old_secret  TEXT NOT NULL DEFAULT '', -- signs as well until old_until
    old_until   BIGINT,
    bare        BOOLEAN NOT NULL,
    batch       BOOLEAN NOT NULL,
    enabled     BOOLEAN NOT NULL,
    reason      TEXT NOT NULL DEFAULT '', -- why it is not enabled
    rate        INTEGER NOT NULL,
    concurrency INTEGER NOT NULL,
    free_at     BIGINT NOT NULL DEFAULT 0, -- when the rate allows more than its burst again
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (org_id, name)
);

-- One row for a subject: an asset, whose newest schedule the client should have, or a
-- single event. It stays when nothing is left to send, so that nothing older is ever sent.
-- Turns and leases are by the true clock, expiry by the organisation's.
CREATE TABLE outbox (
    subject    UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    endpoint   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asset_id   UUID,
    external_id TEXT,           -- of an asset that was deleted while it had something to be told
    event_id   UUID NOT NULL,
    generation BIGINT NOT NULL,
    queued_at  BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,  -- 0: retracted
    turn_at    BIGINT,           -- not sent before, lowest first; null: nothing to send
    tries      INTEGER NOT NULL DEFAULT 0,
    sending    BIGINT NOT NULL DEFAULT 0, -- the generation under way, whose lease ends at turn_at
    holder     BIGINT NOT NULL DEFAULT 0, -- who sends it
    accepted   BIGINT NOT NULL DEFAULT 0  -- the newest generation that the client has taken
) CLUSTERED;
CREATE INDEX outbox_turn ON outbox (org_id, endpoint, turn_at) WHERE turn_at IS NOT NULL;

-- A push that was tried, or ran out of time, with its latest attempt; the attempts before
-- that are in attempt. A pending one that the outbox does not name any more is superseded.
CREATE TABLE delivery (
    org_id     UUID NOT NULL,
    event_id   UUID NOT NULL,
    endpoint   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asset_id   UUID,
    generation BIGINT NOT NULL,
    queued_at  BIGINT NOT NULL,
    state      TEXT NOT NULL, -- pending, accepted, rejected, expired
    tries      INTEGER NOT NULL,
    at         BIGINT NOT NULL,
    took       BIGINT NOT NULL,
    status     INTEGER NOT NULL, -- 0: no answer came
    error      TEXT NOT NULL,
    answer     TEXT NOT NULL,
    PRIMARY KEY (org_id, event_id)
) CLUSTERED;
CREATE INDEX delivery_asset ON delivery (asset_id, event_id);

CREATE TABLE attempt (
    org_id   UUID NOT NULL,
    event_id UUID NOT NULL,
    number   INTEGER NOT NULL,
    at       BIGINT NOT NULL,
    took     BIGINT NOT NULL,
    status   INTEGER NOT NULL,
    error    TEXT NOT NULL,
    answer   TEXT NOT NULL,
    PRIMARY KEY (org_id, event_id, number)
) CLUSTERED;

-- What clients report of an event, in the order of its coming; a status once.
CREATE TABLE callback (
    org_id      UUID NOT NULL,
    event_id    UUID NOT NULL,
    asset_id    UUID NOT NULL,
    status      TEXT NOT NULL,
    reported_at BIGINT NOT NULL, -- as the client says
    received_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, event_id, asset_id, status)
) CLUSTERED;

-- A dispatch asks assets for a power during a time.
CREATE TABLE dispatch (
    event_id  UUID PRIMARY KEY,
    org_id    UUID NOT NULL,
    market    TEXT NOT NULL,
    issued_at BIGINT NOT NULL,
    from_at   BIGINT NOT NULL,
    to_at     BIGINT NOT NULL,
    batch     BOOLEAN NOT NULL
);
CREATE INDEX dispatch_order ON dispatch (org_id, event_id);

CREATE TABLE dispatch_asset (
    event_id UUID NOT NULL REFERENCES dispatch (event_id),
    asset_id UUID NOT NULL,
    org_id   UUID NOT NULL,
    power_w  BIGINT NOT NULL, -- positive draws from the grid
    PRIMARY KEY (event_id, asset_id)
);
CREATE INDEX dispatch_asset_asset ON dispatch_asset (asset_id, event_id);
