-- Flex events, and what their settlement came to, run by run.
-- +goose Up

ALTER TABLE pause ADD COLUMN detected BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX pause_detect ON pause (org_id, to_at) WHERE NOT detected;

CREATE TABLE flex_event (
    id          UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    site_id     UUID NOT NULL,
    asset_id    UUID NOT NULL,
    session_id  UUID,             -- null for a pause in the client's own schedule
    day         TEXT NOT NULL,
    first       INTEGER NOT NULL, -- settlement periods of the day
    last        INTEGER NOT NULL,
    from_at     BIGINT NOT NULL,
    to_at       BIGINT NOT NULL,
    meant       TEXT NOT NULL,    -- Wh that the schedules would have moved in each period
    nominated   TEXT NOT NULL,    -- Wh that each period would have had without the market
    detected_at BIGINT NOT NULL,
    -- Where its settlement stands.
    version     INTEGER NOT NULL DEFAULT 0, -- of its newest settlement
    hash        BYTES,                      -- of that one's inputs
    flex_wh     BIGINT,
    estimated   BIGINT NOT NULL,            -- gross, in millionths of a pound
    final       BIGINT,                     -- the same, once the market's final run is in
    missing     INTEGER NOT NULL DEFAULT 0, -- periods without a reading or a price
    posted      INTEGER NOT NULL DEFAULT 0, -- transactions posted
    waits_at    BIGINT,                     -- the first half-hour whose reading is missing
    look_at     BIGINT                      -- look again then, or when that reading is there; null: closed
);
CREATE UNIQUE INDEX flex_event_asset ON flex_event (org_id, asset_id, from_at);
CREATE INDEX flex_event_site ON flex_event (org_id, site_id, from_at);
CREATE INDEX flex_event_look ON flex_event (org_id, look_at) WHERE look_at IS NOT NULL;

CREATE TABLE settlement_run (
    id         UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    kind       TEXT NOT NULL,   -- 'round', or 'again' for one that posts nothing
    known_at   BIGINT NOT NULL, -- the instant as of which its inputs were known
    started_at BIGINT NOT NULL,
    events     INTEGER NOT NULL,
    hash       BYTES NOT NULL
);
CREATE INDEX settlement_run_order ON settlement_run (org_id, id);

CREATE TABLE settlement (
    run_id        UUID NOT NULL REFERENCES settlement_run (id),
    flex_event_id UUID NOT NULL,
    org_id        UUID NOT NULL,
    version       INTEGER NOT NULL, -- of the event's settlement; 0 in a run that posts nothing
    hash          BYTES NOT NULL,
    result        TEXT NOT NULL,
    PRIMARY KEY (run_id, flex_event_id)
) CLUSTERED;
CREATE INDEX settlement_event ON settlement (flex_event_id, version);

-- +only sqlite
-- +goose StatementBegin
CREATE TRIGGER event_reading_corrected AFTER UPDATE ON reading
BEGIN
    UPDATE flex_event SET look_at = 0 WHERE asset_id = NEW.asset_id AND from_at < NEW.at + 1800000000 AND to_at > NEW.at - 1800000000;
END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE FUNCTION event_reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE flex_event SET look_at = 0 WHERE asset_id = NEW.asset_id AND from_at < NEW.at + 1800000000 AND to_at > NEW.at - 1800000000;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER event_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION event_reading_corrected();
-- +only end
