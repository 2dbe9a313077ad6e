-- An endpoint may ask for members of a profile without a value as null. Left out, the body is
-- valid by OCPP 1.6's schema, so that is what holds where nothing is said.
-- +goose Up
ALTER TABLE endpoint ADD COLUMN nulls BOOLEAN NOT NULL DEFAULT FALSE;
