-- What is to be sent to clients, and what became of it.
-- +goose Up

-- One row for a subject: an asset, whose newest schedule the client should have, or a
-- single event. It stays when nothing is left to send, so that nothing older is ever sent.
-- Turns and leases are by the true clock, expiry by the organisation's.
CREATE TABLE outbox (
    subject    UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    endpoint   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asset_id   UUID,
    event_id   UUID NOT NULL,
    generation BIGINT NOT NULL,
    queued_at  BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    turn_at    BIGINT,           -- not sent before, lowest first; null: nothing to send
    tries      INTEGER NOT NULL DEFAULT 0,
    sending    BIGINT NOT NULL DEFAULT 0, -- the generation under way, whose lease ends at turn_at
    holder     BIGINT NOT NULL DEFAULT 0, -- who sends it
    accepted   BIGINT NOT NULL DEFAULT 0  -- the newest generation that the client has taken
) CLUSTERED;
CREATE INDEX outbox_turn ON outbox (org_id, endpoint, turn_at) WHERE turn_at IS NOT NULL;
