-- The sessions of an organisation by when they began: what a fleet's forecast is learned from.
-- +goose Up
CREATE INDEX session_began ON session (org_id, plugged_in_at);
