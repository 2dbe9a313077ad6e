-- Which of three phases an asset on one phase is on: 1, 2 or 3; 0 where it was not given.
-- +goose Up
ALTER TABLE asset ADD COLUMN phase BIGINT NOT NULL DEFAULT 0;
