-- What is kept of one site is found without reading all that is kept: a person who asks for it, or has it erased, waits for that, and so does
-- every other write.
-- +goose Up
CREATE INDEX session_site ON session (site_id);
CREATE INDEX reckoning_site ON reckoning (site_id);

-- A push of a schedule is found by its asset; of single pushes there are few.
CREATE INDEX outbox_single ON outbox (asset_id) WHERE kind <> 'schedule';
