-- Which claim of the key is in force, a random number: who was stopped past its lease writes nothing under it.
-- +goose Up
ALTER TABLE idempotency ADD COLUMN claim BIGINT;
