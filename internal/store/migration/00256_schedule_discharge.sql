-- What a schedule was made from of a car that may discharge, and when it does.
-- +goose Up
ALTER TABLE schedule ADD COLUMN discharge TEXT;
