-- What tanks and heat pumps were planned to draw and drew in a half-hour of a fleet. Half-hours that were counted before have
-- nothing of it, until they are counted again.
-- +goose Up
ALTER TABLE fleet_half_hour ADD COLUMN heat_planned_wh BIGINT NOT NULL DEFAULT 0;
ALTER TABLE fleet_half_hour ADD COLUMN heat_metered_wh BIGINT NOT NULL DEFAULT 0;
