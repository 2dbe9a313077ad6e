-- What is secret lies sealed under keys that are not in the database. What was kept otherwise
-- before cannot be read any more and is dropped.
-- +goose Up
DROP TABLE secret;

-- The keys by which values here are sealed, by their ids: whoever opens the store must hold
-- them all.
CREATE TABLE seal_key (
    id      BYTES PRIMARY KEY,
    used_at BIGINT NOT NULL -- since when
);

DELETE FROM cloud_link;
DELETE FROM cloud_token;
DELETE FROM payee;
DELETE FROM endpoint;
ALTER TABLE endpoint DROP COLUMN headers;
ALTER TABLE endpoint DROP COLUMN secret;
ALTER TABLE endpoint DROP COLUMN old_secret;
ALTER TABLE endpoint ADD COLUMN sealed BYTES NOT NULL; -- header fields, the secret, the secret before it
