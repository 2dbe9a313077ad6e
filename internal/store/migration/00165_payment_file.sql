-- The payment files that were made: what the bank was given, to be told by its sum.
-- +goose Up
CREATE TABLE payment_file (
    org_id   UUID NOT NULL,
    number   BIGINT NOT NULL,        -- from 1
    message  TEXT NOT NULL,          -- names the file to the bank; one that was written again has the name of the first
    serial   BIGINT NOT NULL,        -- of the message
    format   TEXT NOT NULL,
    day      TEXT NOT NULL,          -- YYYY-MM-DD, on which the payments are to be made
    made_at  BIGINT NOT NULL,
    made_by  TEXT NOT NULL,
    payments BIGINT NOT NULL,
    total    BIGINT NOT NULL,        -- in pence
    sha256   BYTES NOT NULL,
    PRIMARY KEY (org_id, number)
);
