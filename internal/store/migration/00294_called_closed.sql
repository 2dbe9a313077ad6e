-- The time that an asset leaves out for an instruction, in seconds since 1970, as in schedule; null for none, and for calls that are older.
-- +goose Up
ALTER TABLE called_asset ADD COLUMN closed TEXT;
