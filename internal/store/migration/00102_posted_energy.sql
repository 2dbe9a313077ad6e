-- What the transactions about a flex event or a session say in energy, in sum, so that the
-- next says the difference.
-- +goose Up

ALTER TABLE flex_event ADD COLUMN posted_wh BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reckoning ADD COLUMN posted_wh BIGINT NOT NULL DEFAULT 0;
UPDATE flex_event SET posted_wh = COALESCE((SELECT l.flex_wh FROM ledger l WHERE l.flex_event_id = flex_event.id AND l.flex_wh IS NOT NULL
    ORDER BY l.id DESC LIMIT 1), 0) WHERE posted > 0;
UPDATE reckoning SET posted_wh = COALESCE((SELECT l.creditable_wh FROM ledger l WHERE l.session_id = reckoning.session_id AND l.flex_event_id IS NULL
    AND l.creditable_wh IS NOT NULL ORDER BY l.id DESC LIMIT 1), 0) WHERE posted > 0;
