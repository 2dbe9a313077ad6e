-- The key under which texts about persons are sealed, itself sealed under the key file's. Without a row
-- they are in plain text; while it is not whole, flexd key persons has not come to its end.
-- +goose Up
CREATE TABLE person_key (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    sealed  BYTES NOT NULL,
    whole   BOOLEAN NOT NULL,
    made_at BIGINT NOT NULL
);

-- The first 22 characters of a sealed text are alike for all spellings.
CREATE INDEX meter_uprn_sealed ON meter (substr(uprn, 1, 22));
