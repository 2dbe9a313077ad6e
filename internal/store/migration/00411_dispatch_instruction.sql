-- Dispatches of batteries that an operator names are instructions.
-- +goose Up

-- The instruction is a dispatch of named batteries: nobody else is called for it.
ALTER TABLE instruction ADD COLUMN dispatched BOOLEAN NOT NULL DEFAULT FALSE;
-- The battery was named by a dispatch, which is no call of its household.
ALTER TABLE called_asset ADD COLUMN dispatched BOOLEAN NOT NULL DEFAULT FALSE;
