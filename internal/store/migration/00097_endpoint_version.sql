-- Which setting of an endpoint an attempt was made at: an answer to one before says nothing
-- of the endpoint as it is now.
-- +goose Up
ALTER TABLE endpoint ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
