-- What tanks and heat pumps were to draw on past days, so that it is not taken for what their homes draw by themselves.
-- +goose Up
CREATE TABLE heat_day (
    asset_id   UUID NOT NULL REFERENCES asset (id) ON DELETE CASCADE,
    from_at    BIGINT NOT NULL, -- midnight in London
    org_id     UUID NOT NULL,
    -- Of each half-hour its number, what was to be drawn in watt-hours by the plan, and the most that may have been by all that the
    -- heater may have been following. One that was planned again is there again: of what was to be drawn the first counts, else the most.
    half_hours TEXT NOT NULL,
    PRIMARY KEY (asset_id, from_at)
) CLUSTERED;
CREATE INDEX heat_day_began ON heat_day (org_id, from_at);
