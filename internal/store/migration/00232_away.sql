-- A household that is away needs no energy from away_from until away_to. At away_due one of the two
-- comes, and what stands plugged in is planned anew.
-- +goose Up
ALTER TABLE inputs ADD COLUMN away_from BIGINT;
ALTER TABLE inputs ADD COLUMN away_to BIGINT;
ALTER TABLE inputs ADD COLUMN away_due BIGINT;
CREATE INDEX inputs_away ON inputs (org_id, away_due) WHERE away_due IS NOT NULL;
