-- What settlement reports say that was delivered at a metering point in a half-hour, by run.
-- +goose Up
CREATE TABLE settled_volume (
    org_id       UUID NOT NULL,
    mpan         TEXT NOT NULL,
    at           BIGINT NOT NULL,
    run          SMALLINT NOT NULL, -- 1 II, 2 SF, 3 R1, 4 R2, 5 R3, 6 RF, 7 DF
    site_id      UUID NOT NULL,
    delivered_wh BIGINT NOT NULL,   -- more import is positive
    PRIMARY KEY (org_id, mpan, at, run)
) CLUSTERED;
CREATE INDEX settled_volume_site ON settled_volume (site_id);
