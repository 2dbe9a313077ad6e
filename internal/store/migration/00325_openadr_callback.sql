-- A utility's OpenADR server calls when something has changed, and knows the fleet as a resource of the VEN.
-- +goose Up
ALTER TABLE adr_upstream ADD COLUMN callback TEXT NOT NULL DEFAULT '';     -- flexd's address, as that server reaches it; empty: it does not call
ALTER TABLE adr_upstream ADD COLUMN subscription TEXT NOT NULL DEFAULT ''; -- the subscription's id there
ALTER TABLE adr_upstream ADD COLUMN subscribed BIGINT;                     -- when it was last seen there
ALTER TABLE adr_upstream ADD COLUMN called_at BIGINT;                      -- when it called, since it was last asked
-- Those that know the VEN are asked once more whether they know its resource too.
UPDATE adr_upstream SET registered = NULL;
