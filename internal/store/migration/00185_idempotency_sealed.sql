-- Answers that wait for a repeated request are sealed, belong to a site where they are about
-- one, so that erasing it erases them, and name the process that works on them.
-- +goose Up
ALTER TABLE idempotency ADD COLUMN sealed BYTES;   -- the answer, where the store has keys
ALTER TABLE idempotency ADD COLUMN site_id UUID;
ALTER TABLE idempotency ADD COLUMN holder BIGINT;  -- the process, while in flight

