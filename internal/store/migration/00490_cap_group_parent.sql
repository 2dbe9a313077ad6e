-- Constraint groups lie in each other, as a feeder lies in a substation.
-- +goose Up

-- The name of the group that this one lies in; null for none. A version that does not know this reads every group as lying in none.
ALTER TABLE cap_group ADD COLUMN parent TEXT;
