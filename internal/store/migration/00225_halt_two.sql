-- A halt that two people end: the first asks for it, another does it.
-- +goose Up
ALTER TABLE halt ADD COLUMN needs_two INTEGER NOT NULL DEFAULT 0;
ALTER TABLE halt ADD COLUMN asked_by TEXT NOT NULL DEFAULT ''; -- who asked for its end
ALTER TABLE halt ADD COLUMN asked_at BIGINT;
