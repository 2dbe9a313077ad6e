-- The last session that an organisation was credited for is found without reading all.
-- +goose Up
CREATE INDEX reckoning_posted_last ON reckoning (org_id, from_at) WHERE posted > 0;
