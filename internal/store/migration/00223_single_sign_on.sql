-- Operators who sign in at an identity provider: who they are there. They have no password.
-- +goose Up
ALTER TABLE operator ADD COLUMN issuer TEXT NOT NULL DEFAULT '';  -- the provider; empty for a password of their own
ALTER TABLE operator ADD COLUMN subject TEXT NOT NULL DEFAULT ''; -- their name with it, never given to another
CREATE UNIQUE INDEX operator_subject ON operator (issuer, subject) WHERE issuer <> '';

-- Answers of identity providers that were taken, until they are of no use any more: none is taken twice.
CREATE TABLE operator_sign_in (
    nonce      BYTES PRIMARY KEY, -- SHA-256 of it
    expires_at BIGINT NOT NULL
);
