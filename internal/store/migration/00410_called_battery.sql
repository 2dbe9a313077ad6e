-- Home batteries that an instruction calls.
-- +goose Up

-- The called asset is a home battery: its steps are signed powers, and closed has the half-hours that its plan keeps to.
ALTER TABLE called_asset ADD COLUMN battery BOOLEAN NOT NULL DEFAULT FALSE;
