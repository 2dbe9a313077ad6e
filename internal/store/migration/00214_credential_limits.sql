-- Credentials that end by themselves, are used from certain networks alone, and get a new password while the one
-- before goes on for a while.
-- +goose Up
ALTER TABLE credential ADD COLUMN expires_at BIGINT;
ALTER TABLE credential ADD COLUMN used_at BIGINT;                      -- the latest login, to the minute
ALTER TABLE credential ADD COLUMN allow_from TEXT NOT NULL DEFAULT ''; -- networks with commas; everywhere if empty
ALTER TABLE credential ADD COLUMN former_hash BYTES;                   -- of the password before
ALTER TABLE credential ADD COLUMN former_until BIGINT;                 -- how long that one is taken
