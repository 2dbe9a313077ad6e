-- The carbon of electricity, as it was last told.
-- +goose Up
CREATE TABLE carbon (
    start_at   BIGINT PRIMARY KEY,
    grams      BIGINT NOT NULL,  -- of carbon dioxide per kilowatt-hour
    actual     BOOLEAN NOT NULL, -- measured, not forecast
    fetched_at BIGINT NOT NULL
);
CREATE INDEX publication_source ON publication (source, fetched_at);
