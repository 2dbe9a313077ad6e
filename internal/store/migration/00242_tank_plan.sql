-- When the element of each hot-water tank is on and off, and what that was worked out from. A plan outlives its
-- tank, so that what was sent can be taken back.
-- +goose Up
CREATE TABLE tank_plan (
    asset_id    UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    site_id     UUID NOT NULL,
    event_id    UUID NOT NULL,   -- of its push
    generation  BIGINT NOT NULL, -- of the asset's schedules, rising from 1
    made_at     BIGINT NOT NULL,
    power_w     BIGINT NOT NULL, -- of its element
    from_at     BIGINT NOT NULL, -- of the first step
    to_at       BIGINT NOT NULL, -- of the last step, after which the tank is free
    steps       TEXT NOT NULL,   -- seconds x watts each
    may_from_at BIGINT NOT NULL,
    may         TEXT NOT NULL,   -- the most of all that it may be following
    freed       BOOLEAN NOT NULL, -- control ended; the schedule leaves it free
    planned_at  BIGINT NOT NULL, -- when it was last worked out, by the organisation's clock
    seen_at     BIGINT NOT NULL, -- the same by the true clock, by which prices come in
    stored_at   BIGINT NOT NULL, -- the instant at which
    stored_wh   BIGINT NOT NULL, -- this was stored above the bottom of the band
    basis       TEXT NOT NULL,   -- how that is known: read, expected or assumed
    lack_wh     BIGINT NOT NULL, -- the most that it is expected to lack, 0 for nothing
    lack_at     BIGINT           -- when that is
);
CREATE INDEX tank_plan_due ON tank_plan (org_id, planned_at);
CREATE INDEX tank_plan_site ON tank_plan (site_id);
