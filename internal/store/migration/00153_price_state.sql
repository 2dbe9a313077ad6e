-- Prices that their source calls preliminary, and what of a source's latest answer was kept out.
-- +goose Up
ALTER TABLE publication ADD COLUMN preliminary BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE price_kept_out (
    source     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    rows       BIGINT NOT NULL,
    first_at   BIGINT NOT NULL, -- the start of the first of them
    fetched_at BIGINT NOT NULL,
    PRIMARY KEY (source, reason)
);
