-- The index is the same as flex_event_time: each was written for each event.
-- +goose Up
DROP INDEX flex_event_began;
