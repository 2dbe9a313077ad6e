-- How a car may give energy back, as its client told it, and since when its user has consented to that.
-- +goose Up
ALTER TABLE asset ADD COLUMN discharge TEXT;
ALTER TABLE site ADD COLUMN discharge_consent_at BIGINT;
