-- What instructions pay for the half-hours of a flex event, as it was when the event was found.
-- +goose Up
ALTER TABLE flex_event ADD COLUMN instructed TEXT; -- JSON, a list of parts; null for none
