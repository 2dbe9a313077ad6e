-- Deliveries that were not taken are few, and are found without reading those that were.
-- +goose Up
CREATE INDEX delivery_not_taken ON delivery (org_id, state, event_id) WHERE state <> 'accepted';
