-- Which environment the database is for: the one that it was first served as, or that its first organisation was added for. Without
-- a row that is not known yet.
-- +goose Up
CREATE TABLE environment (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
);
