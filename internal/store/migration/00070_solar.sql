-- What somebody who knows better says that a site's roof will give.
-- +goose Up

CREATE TABLE solar (
    site_id  UUID PRIMARY KEY REFERENCES site (id) ON DELETE CASCADE,
    org_id   UUID NOT NULL,
    source   TEXT NOT NULL,   -- who says so
    given_at BIGINT NOT NULL, -- by the organisation's clock
    from_at  BIGINT NOT NULL, -- the first half-hour
    energies TEXT NOT NULL    -- watt-hours of each half-hour, - where nothing is said
);
