-- Whether an endpoint takes schedules by which a car discharges, and in which form.
-- +goose Up
ALTER TABLE endpoint ADD COLUMN discharge TEXT NOT NULL DEFAULT '';
