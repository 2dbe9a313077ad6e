-- What home batteries held and were to do on past days, for forecasts of what they can do.
-- +goose Up
CREATE TABLE battery_day (
    asset_id   UUID NOT NULL REFERENCES asset (id) ON DELETE CASCADE,
    from_at    BIGINT NOT NULL, -- midnight in London
    org_id     UUID NOT NULL,
    -- Of each half-hour, as it was planned first: its number, what was held at its start in watt-hours, the planned power in watts
    -- without instructions, and whether it could charge (c), discharge (d), both (b) or neither (-).
    half_hours TEXT NOT NULL,
    PRIMARY KEY (asset_id, from_at)
) CLUSTERED;
CREATE INDEX battery_day_began ON battery_day (org_id, from_at);
