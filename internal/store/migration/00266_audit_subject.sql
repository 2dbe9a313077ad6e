-- Who did and saw what of a person: the audit log by what an act was done to.
-- +goose Up
CREATE INDEX audit_subject ON audit (subject, id);
