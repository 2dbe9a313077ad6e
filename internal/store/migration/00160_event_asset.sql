-- What an event's asset was when the event was found: a later change of the asset changes nothing
-- of what was settled, and no hash of an earlier instant. Of events that are there it is what
-- their assets are now.
-- +goose Up

ALTER TABLE flex_event ADD COLUMN power_w BIGINT; -- 0: not known
ALTER TABLE flex_event ADD COLUMN cop11 BOOLEAN;  -- whether the asset's own meter may settle it

UPDATE flex_event SET
    power_w = COALESCE((SELECT a.power_w FROM asset a WHERE a.id = flex_event.asset_id), (SELECT f.power_w FROM former_asset f WHERE f.id = flex_event.asset_id), 0),
    cop11 = COALESCE((SELECT m.cop11 AND a.installed_on <> '' FROM asset a JOIN model m ON m.key = lower(a.model) WHERE a.id = flex_event.asset_id),
        (SELECT f.cop11 FROM former_asset f WHERE f.id = flex_event.asset_id), FALSE);
