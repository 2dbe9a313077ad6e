-- What a battery's client may have read of half-hours that its plan says otherwise by now.
-- +goose Up

-- The half-hour of the first letter, and a letter for each half-hour: C that it may charge, D that it may discharge, B both. Empty
-- until it is planned again, which is soon enough: nothing was counted before.
ALTER TABLE battery_plan ADD COLUMN handed_at BIGINT;
ALTER TABLE battery_plan ADD COLUMN handed TEXT NOT NULL DEFAULT '';
