-- What was learned of a heat pump's building or of a hot-water tank from its readings: once a day, when it is first planned.
-- +goose Up
CREATE TABLE heat_model (
    asset_id   UUID PRIMARY KEY REFERENCES asset (id) ON DELETE CASCADE,
    org_id     UUID NOT NULL,
    learned_on TEXT NOT NULL, -- the London day, whose readings are not in it
    reset_at   BIGINT,        -- what was read before teaches nothing
    model      TEXT           -- JSON, by name; NULL if nothing was learned
);
