-- Operators of some organisations alone. Whoever is there already is one of all.
-- +goose Up
ALTER TABLE operator ADD COLUMN some_orgs INTEGER NOT NULL DEFAULT 0; -- 1: of those in operator_org alone, be it none

CREATE TABLE operator_org (
    operator_id UUID NOT NULL REFERENCES operator (id),
    org_id      UUID NOT NULL REFERENCES org (id),
    PRIMARY KEY (operator_id, org_id)
);
