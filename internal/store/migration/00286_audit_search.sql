-- Who saw a person's site among what a search found: the entries of searches, whose detail has the sites' ids.
-- +goose Up
CREATE INDEX audit_search ON audit (id) WHERE act = 'see what a search finds';
