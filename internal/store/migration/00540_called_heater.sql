-- Hot-water tanks and heat pumps that an instruction calls.
-- +goose Up

-- The called asset is a tank or a heat pump: its steps are the powers that it is expected to draw, and closed has the half-hours in
-- which its plan keeps to the instruction.
ALTER TABLE called_asset ADD COLUMN heater BOOLEAN NOT NULL DEFAULT FALSE;

-- What the element of a tank is expected to draw by its plan, as steps from stored_at on: less than its power where the thermostat has
-- it off. Empty of a heat pump, whose half-hours say it, and of a plan of before this.
ALTER TABLE tank_plan ADD COLUMN expected TEXT NOT NULL DEFAULT '';
