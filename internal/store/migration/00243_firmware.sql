-- The version of an asset's firmware, as its client last told it; empty where it never did.
-- +goose Up
ALTER TABLE asset ADD COLUMN firmware TEXT NOT NULL DEFAULT '';
