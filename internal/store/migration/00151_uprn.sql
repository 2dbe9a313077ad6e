-- Sites are found by the property number of their metering point, with or without the zeros that
-- some lists write before it.
-- +goose Up
CREATE INDEX meter_uprn ON meter (LTRIM(uprn, '0'));
