-- What a car gave in a session, by its schedules: what is bought back for it earns nothing.
-- +goose Up
ALTER TABLE reckoning ADD COLUMN given_wh BIGINT NOT NULL DEFAULT 0;
