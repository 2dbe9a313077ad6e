-- What tanks and heat pumps could have drawn less or more than planned on past days, for forecasts.
-- +goose Up
-- Of each half-hour its number, and in watt-hours by how much the heater could have drawn less, and more, in the windows that begin with
-- it: of one half-hour, of two, and so on, of at most eight. A list that is shorter goes on as it ends.
ALTER TABLE heat_day ADD COLUMN moves TEXT NOT NULL DEFAULT '';
