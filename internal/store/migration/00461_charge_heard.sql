-- Batteries whose state of charge stops coming while other readings come.
-- +goose Up

-- The newest state of charge of a battery, noted as the newest steady reading is; null: none ever came.
ALTER TABLE reading_due ADD COLUMN charge_at BIGINT;
CREATE INDEX reading_due_charge ON reading_due (org_id, charge_at) WHERE charge_at IS NOT NULL;
