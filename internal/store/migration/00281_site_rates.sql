-- What a kWh costs and earns at a site with a fixed tariff, in pence: in dear hours, in cheap ones and exported, joined by
-- commas; what is blank was not given.
-- +goose Up
ALTER TABLE site ADD COLUMN rates TEXT NOT NULL DEFAULT '';
