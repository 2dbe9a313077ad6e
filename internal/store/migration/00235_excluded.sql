-- Since when an operator has an asset excluded from control; null where it is not.
-- +goose Up
ALTER TABLE asset ADD COLUMN excluded_at BIGINT;
