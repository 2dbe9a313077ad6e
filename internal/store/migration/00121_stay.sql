-- A flex event knows the stay of the car that it was in, and what the car would have drawn in
-- it without the market, so that a nominated baseline takes of it only what the stay shows.
-- +goose Up

ALTER TABLE pause ADD COLUMN until_at BIGINT; -- the end of the client's schedule; null: not noted

ALTER TABLE flex_event ADD COLUMN stay_from BIGINT; -- null for an asset that is not plugged in
ALTER TABLE flex_event ADD COLUMN stay_to BIGINT;
ALTER TABLE flex_event ADD COLUMN stay_plan TEXT NOT NULL DEFAULT ''; -- Wh of each half-hour that the stay touches

UPDATE flex_event SET stay_from = (SELECT r.from_at FROM reckoning r WHERE r.session_id = flex_event.session_id),
        stay_to = (SELECT r.to_at FROM reckoning r WHERE r.session_id = flex_event.session_id)
    WHERE session_id IS NOT NULL;
-- A pause, whose schedule's end was not noted: no other pause begins within twelve hours.
UPDATE flex_event SET stay_from = from_at, stay_to = to_at + 43200000000
    WHERE session_id IS NULL AND NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = flex_event.asset_id AND a.type = 'battery');
