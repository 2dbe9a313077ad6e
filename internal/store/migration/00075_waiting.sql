-- Since when an asset waits: a push that is planned anew before the client has taken the one
-- before does not begin its waiting again.
-- +goose Up
ALTER TABLE outbox ADD COLUMN waiting_since BIGINT NOT NULL DEFAULT 0;
UPDATE outbox SET waiting_since = queued_at;
