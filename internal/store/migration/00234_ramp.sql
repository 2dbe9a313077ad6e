-- How much later than the market and the tariff say a schedule begins and ends, so that the power of a large
-- fleet does not move at once; null where nothing is spread.
-- +goose Up
ALTER TABLE schedule ADD COLUMN ramp TEXT;
