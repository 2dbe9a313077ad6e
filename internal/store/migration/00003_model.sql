-- An operator's own word on whether a model may be enrolled, beyond the market's rules.
-- +goose Up
ALTER TABLE model ADD COLUMN enrol TEXT NOT NULL DEFAULT '';
