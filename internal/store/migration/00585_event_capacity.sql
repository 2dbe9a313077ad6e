-- What capacity an event's asset had when the event was found, by which a state of charge shows what it took: a later change of
-- the asset, or its removal, takes nothing back. Of events that are there it is what their assets have.
-- +goose Up

ALTER TABLE flex_event ADD COLUMN capacity_wh BIGINT; -- null: not known then, or found before this was kept
ALTER TABLE former_asset ADD COLUMN capacity_wh BIGINT;
