-- +goose Up
-- Of a line of a month that is netted: what the month's other events came to when it was posted, in
-- pence, and what was credited for them. With them the line's own credit can be worked out again.
ALTER TABLE ledger ADD COLUMN others_share BIGINT;
ALTER TABLE ledger ADD COLUMN others_credited BIGINT;
