-- +goose Up
-- What clients reported as rejected or failed is looked for every few seconds; of all reports they are few.
CREATE INDEX callback_failed ON callback (asset_id, event_id) WHERE status IN ('REJECTED', 'FAILED');
