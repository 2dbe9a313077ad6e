-- What a fleet was planned to draw and drew, half-hour by half-hour, as a whole and by group: counted once a
-- half-hour is over, and again as readings come late, so that a page reads rows and not a fleet.
-- +goose Up
CREATE TABLE fleet_half_hour (
    org_id             UUID NOT NULL,
    at                 BIGINT NOT NULL,
    attribute          TEXT NOT NULL,   -- what the assets have in common; '' for the fleet as a whole
    name               TEXT NOT NULL,   -- of that attribute; '' for assets of which none is known
    counted_at         BIGINT NOT NULL, -- by the organisation's clock
    plugged            BIGINT NOT NULL, -- sessions that touch the half-hour
    planned_wh         BIGINT NOT NULL, -- of sessions, by the schedules in force
    unmoved_wh         BIGINT NOT NULL, -- the same energy, had each begun at full power at plug-in
    metered_wh         BIGINT NOT NULL, -- by chargers
    wanted             BIGINT NOT NULL, -- half-hours of chargers with a car throughout
    known              BIGINT NOT NULL, -- of them, those that were metered
    battery_planned_wh BIGINT NOT NULL, -- by dispatches; more import is positive
    battery_metered_wh BIGINT NOT NULL,
    earned             BIGINT NOT NULL, -- of flex events that began in it, before shares, in millionths of a pound
    saved              BIGINT NOT NULL, -- by the schedules of sessions that began in it, at market prices, in millionths of a pound
    unpriced           BIGINT NOT NULL, -- of these sessions, those that a price is missing for
    cap_w              BIGINT,          -- the fleet's, when the half-hour was first counted; null for none
    PRIMARY KEY (org_id, at, attribute, name)
) CLUSTERED;
CREATE INDEX flex_event_began ON flex_event (org_id, from_at);
CREATE INDEX dispatch_began ON dispatch (org_id, from_at);
