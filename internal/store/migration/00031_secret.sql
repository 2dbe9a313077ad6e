-- Keys that the house made for itself, so that they outlive a restart and are the same on
-- every machine.
-- +goose Up
CREATE TABLE secret (
    name    TEXT PRIMARY KEY,
    key     BYTES NOT NULL,
    made_at BIGINT NOT NULL
);
