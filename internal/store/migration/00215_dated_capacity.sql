-- What a connection can carry and what an asset's power is, from when on: a change counts for no
-- half-hour before it.
-- +goose Up

ALTER TABLE supply ADD COLUMN from_at BIGINT; -- null: from the beginning
UPDATE supply SET from_at = known_at WHERE EXISTS (SELECT 1 FROM supply f WHERE f.site_id = supply.site_id AND f.known_at < supply.known_at)
    OR EXISTS (SELECT 1 FROM deviation d WHERE d.site_id = supply.site_id AND d.at < supply.known_at);

-- Whether the capacity was set; else it is the default.
ALTER TABLE site ADD COLUMN supply_set BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE site SET supply_set = TRUE WHERE EXISTS (SELECT 1 FROM supply s WHERE s.site_id = site.id);

-- The powers that an asset had. One without rows has had the power of now from the beginning.
CREATE TABLE asset_power (
    asset_id UUID NOT NULL,
    org_id   UUID NOT NULL,
    power_w  BIGINT NOT NULL, -- 0: not known
    from_at  BIGINT,          -- null: from the beginning
    known_at BIGINT NOT NULL, -- by the organisation's clock
    PRIMARY KEY (asset_id, known_at)
) CLUSTERED;

-- It was never filled: what an asset could move follows from its power when the event was found.
ALTER TABLE flex_event DROP COLUMN most_wh;
