-- What a home was learned to draw by itself, its cars and batteries apart: once a day, when it is first asked for.
-- +goose Up

CREATE TABLE base_load (
    site_id    UUID PRIMARY KEY REFERENCES site (id) ON DELETE CASCADE,
    org_id     UUID NOT NULL,
    learned_on TEXT NOT NULL, -- the London day, whose readings are not in it
    basis      TEXT NOT NULL, -- the assets and the consent that it was learned by
    load       TEXT NOT NULL  -- JSON: watts by kind of day and half-hour
);
