-- The plans of heat pumps are kept with those of tanks: what steers each step and what the room is expected to
-- have, as JSON, and the most that it is expected to lack, in thousandths of a degree.
-- +goose Up
ALTER TABLE tank_plan ADD COLUMN heat TEXT;
ALTER TABLE tank_plan ADD COLUMN lack_mk BIGINT NOT NULL DEFAULT 0;
