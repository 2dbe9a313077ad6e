-- A car that was freed while it was plugged in may draw its full power until it is plugged out.
-- +goose Up

-- Control of the asset ended while the session was open: the car stays plugged in, as far as is known.
ALTER TABLE session ADD COLUMN freed BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX session_freed ON session (org_id, asset_id) WHERE freed;
