-- A tank or a heat pump that an instruction let go is planned after the transaction that let it go.
-- +goose Up

-- It waits to be planned without that instruction: its best plan takes the place of the one in force, whatever that saves.
ALTER TABLE tank_plan ADD COLUMN released BOOLEAN NOT NULL DEFAULT FALSE;
