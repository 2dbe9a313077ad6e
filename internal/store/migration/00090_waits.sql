-- Which flex events wait for a reading: few of those that are not final yet.
-- +goose Up

UPDATE flex_event SET waits_at = NULL WHERE look_at IS NULL AND waits_at IS NOT NULL;
CREATE INDEX flex_event_waits ON flex_event (org_id, waits_at) WHERE waits_at IS NOT NULL;
