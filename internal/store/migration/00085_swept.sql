-- Which ended sessions have had their superseded schedules forgotten.
-- +goose Up
ALTER TABLE session ADD COLUMN swept BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX session_ended_at ON session (org_id, plugged_out_at) WHERE plugged_out_at IS NOT NULL AND NOT swept;
