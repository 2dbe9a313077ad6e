-- Whether another party's OpenADR server has what each asset draws, by the asset's id; else of the program's scope as a whole.
-- +goose Up
ALTER TABLE adr_upstream ADD COLUMN per_asset BOOLEAN NOT NULL DEFAULT FALSE;
