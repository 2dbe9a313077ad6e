-- Settlement by site: what a site's meter deviated by in each half-hour, and the parts that
-- its flex events have in it.
-- +goose Up

ALTER TABLE flex_event ADD COLUMN most_wh BIGINT; -- what its asset could move in a half-hour; null: not noted
ALTER TABLE former_asset ADD COLUMN power_w BIGINT;
ALTER TABLE former_asset ADD COLUMN type TEXT NOT NULL DEFAULT '';

-- A half-hour as it was settled last.
CREATE TABLE deviation (
    site_id       UUID NOT NULL,
    meter_id      UUID NOT NULL,   -- the asset whose own meter it is; all zeros: the site's boundary
    at            BIGINT NOT NULL,
    org_id        UUID NOT NULL,
    label         SMALLINT,        -- by number, as readings have it; null: several
    metered_wh    BIGINT NOT NULL,
    baseline_wh   BIGINT NOT NULL,
    apart_wh      BIGINT NOT NULL, -- settled on meters of assets behind this one
    deviation_wh  BIGINT NOT NULL, -- metered less baseline less what is settled apart
    unassigned_wh BIGINT NOT NULL, -- beyond what the events' assets can have moved
    import_wh     BIGINT NOT NULL, -- the most that the connection or the device can have taken
    export_wh     BIGINT NOT NULL, -- and given
    PRIMARY KEY (site_id, meter_id, at)
) CLUSTERED;

-- A flex event's part in it.
CREATE TABLE deviation_part (
    site_id       UUID NOT NULL,
    meter_id      UUID NOT NULL,
    at            BIGINT NOT NULL,
    flex_event_id UUID NOT NULL,
    org_id        UUID NOT NULL,
    flex_wh       BIGINT NOT NULL,
    most_wh       BIGINT NOT NULL, -- what its asset can have moved
    PRIMARY KEY (site_id, meter_id, at, flex_event_id)
) CLUSTERED;
