-- What each home battery is told to do, half-hour by half-hour: the past of today, and the
-- plan ahead. A plan is worked out anew each half-hour and when its inputs change.
-- +goose Up
CREATE TABLE battery_plan (
    asset_id    UUID PRIMARY KEY REFERENCES asset (id) ON DELETE CASCADE,
    org_id      UUID NOT NULL,
    from_at     BIGINT NOT NULL, -- of the first half-hour
    modes       TEXT NOT NULL,   -- a letter for each half-hour
    planned_at  BIGINT NOT NULL, -- when it was last worked out, by the organisation's clock
    seen_at     BIGINT NOT NULL, -- the same by the true clock, by which prices come in
    changed_at  BIGINT NOT NULL, -- when it last came out otherwise than before
    told_at     BIGINT,          -- the end of what was handed over as dispatches
    stored_at   BIGINT NOT NULL, -- the half-hour at whose start
    stored_wh   BIGINT NOT NULL, -- this was stored, as read or reckoned
    guess_at    BIGINT NOT NULL, -- the first half-hour of
    guess       TEXT NOT NULL    -- the guessed load and roof: watt-hours, load/roof for each half-hour
);
CREATE INDEX battery_plan_due ON battery_plan (org_id, planned_at);
