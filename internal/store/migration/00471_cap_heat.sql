-- Tanks and heat pumps count under caps too.
-- +goose Up

-- Caps on how many begin in a minute are for cars alone.
ALTER TABLE cap_part ADD COLUMN paced BOOLEAN NOT NULL DEFAULT TRUE;

-- What was added up before has none of them.
UPDATE caps SET summed_at = NULL;
