-- What was given of the heat that a heat pump or a tank keeps: comfort bands, volume and how it is steered, as JSON.
-- +goose Up
ALTER TABLE asset ADD COLUMN heat TEXT;
