-- The networks from which an organisation's credentials and their tokens are of use, with commas; everywhere if
-- empty. A credential's own networks hold beside it.
-- +goose Up
ALTER TABLE org ADD COLUMN allow_from TEXT NOT NULL DEFAULT '';
