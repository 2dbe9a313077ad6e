-- What the guess of a battery's plan was made of at the boundary, so that it can be held against
-- the consent: the device, the labels and the half-hours. Empty: not known, or nothing.
-- +goose Up
ALTER TABLE battery_plan ADD COLUMN guess_read TEXT NOT NULL DEFAULT '';
