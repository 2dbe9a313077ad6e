-- Which metering point a site had, and from when to when. The rows stay when the site's MPAN changes or
-- the site goes, for what was metered then is still settled.
-- +goose Up
CREATE TABLE site_point (
    site_id UUID NOT NULL,
    org_id  UUID NOT NULL,
    mpan    TEXT NOT NULL,
    from_at BIGINT NOT NULL, -- by the organisation's clock
    to_at   BIGINT,          -- null while it lasts
    PRIMARY KEY (site_id, from_at)
);
CREATE UNIQUE INDEX site_point_now ON site_point (site_id) WHERE to_at IS NULL;
CREATE INDEX site_point_mpan ON site_point (mpan);

INSERT INTO site_point (site_id, org_id, mpan, from_at)
SELECT id, org_id, mpan, created_at FROM site WHERE mpan IS NOT NULL;
