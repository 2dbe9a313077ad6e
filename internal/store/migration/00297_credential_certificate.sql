-- The SHA-256 fingerprints, with commas, of the client certificates that a credential is bound to; empty if it is bound to none.
-- +goose Up
ALTER TABLE credential ADD COLUMN certificates TEXT NOT NULL DEFAULT '';
