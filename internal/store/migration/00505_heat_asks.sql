-- When a tank or a heat pump would be on as well, if what can wait behind the main fuse left it the headroom: steps like those of
-- its plan, from an instant on; empty for never.
-- +goose Up
ALTER TABLE tank_plan ADD COLUMN asks_from_at BIGINT; -- null where it asks for nothing
ALTER TABLE tank_plan ADD COLUMN asks TEXT NOT NULL DEFAULT '';
