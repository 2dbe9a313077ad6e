-- What clients have refused for good is found without reading every asset's place in the outbox.
-- +goose Up
CREATE INDEX outbox_refused ON outbox (org_id, asset_id) WHERE turn_at IS NULL AND kind = 'schedule' AND accepted < generation;
