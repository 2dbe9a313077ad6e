-- What an asset really draws: learned from each of its sessions, used by its schedules, and
-- set by an operator.
-- +goose Up

-- One session's half-hours in which it is known what was allowed and what was drawn.
CREATE TABLE rate_session (
    session_id  UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    asset_id    UUID NOT NULL,
    number      BIGINT NOT NULL,           -- of the session, among the asset's
    vehicle_w   BIGINT NOT NULL,           -- the rate that its plug-in named, 0 for none
    from_at     BIGINT NOT NULL,
    to_at       BIGINT NOT NULL,
    half_hours  BIGINT NOT NULL,           -- that counted
    power_w     BIGINT NOT NULL,           -- 99999 if all that is nominal was drawn
    at_least_w  BIGINT NOT NULL,
    minimum_w   BIGINT NOT NULL,
    delay_s     BIGINT NOT NULL,
    tail_wh     BIGINT NOT NULL
);
CREATE INDEX rate_session_asset ON rate_session (asset_id, number);

-- When a session that ended is looked at for what it teaches; null when that is done.
ALTER TABLE session ADD COLUMN rate_look_at BIGINT;
CREATE INDEX session_rate ON session (org_id, rate_look_at) WHERE rate_look_at IS NOT NULL;

ALTER TABLE schedule ADD COLUMN learned TEXT;      -- a learnedRecord, null if nothing was used
ALTER TABLE asset ADD COLUMN rate_pin_w BIGINT;    -- the power that an operator wants it planned with
ALTER TABLE asset ADD COLUMN rate_reset_at BIGINT; -- what was drawn before teaches nothing
