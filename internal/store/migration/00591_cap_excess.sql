-- When more is drawn than a limit allows, by the newest plan, and how much more at most. Null and 0 where nothing is.
-- +goose Up
ALTER TABLE cap_limit ADD COLUMN over_from_at BIGINT;
ALTER TABLE cap_limit ADD COLUMN over_to_at BIGINT;
ALTER TABLE cap_limit ADD COLUMN over_w BIGINT NOT NULL DEFAULT 0;
CREATE INDEX cap_limit_exceeded ON cap_limit (over_to_at) WHERE over_w > 0;
