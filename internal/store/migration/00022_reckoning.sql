-- Which plug sessions are still to be reckoned up, and what they wait for.
-- +goose Up

-- A row comes when a session ends, and starts over when the session ends again or a reading
-- of its time is corrected.
CREATE TABLE reckoning (
    session_id UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    asset_id   UUID NOT NULL,
    site_id    UUID NOT NULL,
    from_at    BIGINT NOT NULL,
    to_at      BIGINT NOT NULL,
    waits_at   BIGINT, -- the first half-hour whose reading is missing
    look_at    BIGINT, -- look again then, or when that reading is there; null: closed
    detect_at  BIGINT, -- when to look for flex events; null: done
    posted     INTEGER NOT NULL DEFAULT 0, -- transactions posted
    rate       BIGINT,  -- at which the first was, which holds for the others
    version    BIGINT NOT NULL DEFAULT 0 -- rises with every look
) CLUSTERED;
CREATE INDEX reckoning_look ON reckoning (org_id, look_at) WHERE look_at IS NOT NULL;
CREATE INDEX reckoning_detect ON reckoning (org_id, detect_at) WHERE detect_at IS NOT NULL;
CREATE INDEX reckoning_asset ON reckoning (asset_id, to_at);

-- +only sqlite
-- +goose StatementBegin
CREATE TRIGGER session_ended AFTER UPDATE OF plugged_out_at ON session
    WHEN NEW.plugged_out_at IS NOT NULL AND NEW.plugged_out_at IS NOT OLD.plugged_out_at
BEGIN
    INSERT INTO reckoning (session_id, org_id, asset_id, site_id, from_at, to_at, look_at, detect_at)
    VALUES (NEW.id, NEW.org_id, NEW.asset_id, NEW.site_id, NEW.plugged_in_at, NEW.plugged_out_at, 0, NEW.plugged_out_at + 60000000)
    ON CONFLICT (session_id) DO UPDATE SET to_at = excluded.to_at, look_at = 0, waits_at = NULL, detect_at = excluded.detect_at;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER session_reopened AFTER UPDATE OF plugged_out_at ON session WHEN NEW.plugged_out_at IS NULL
BEGIN
    UPDATE reckoning SET look_at = NULL, detect_at = NULL WHERE session_id = NEW.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reckoned_reading_corrected AFTER UPDATE ON reading
BEGIN
    UPDATE reckoning SET look_at = 0 WHERE asset_id = NEW.asset_id AND to_at > NEW.at - 1800000000 AND from_at < NEW.at + 1800000000;
END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE FUNCTION session_turned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.plugged_out_at IS NULL THEN
        UPDATE reckoning SET look_at = NULL, detect_at = NULL WHERE session_id = NEW.id;
        RETURN NULL;
    END IF;
    INSERT INTO reckoning (session_id, org_id, asset_id, site_id, from_at, to_at, look_at, detect_at)
    VALUES (NEW.id, NEW.org_id, NEW.asset_id, NEW.site_id, NEW.plugged_in_at, NEW.plugged_out_at, 0, NEW.plugged_out_at + 60000000)
    ON CONFLICT (session_id) DO UPDATE SET to_at = excluded.to_at, look_at = 0, waits_at = NULL, detect_at = excluded.detect_at;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER session_turned AFTER UPDATE ON session FOR EACH ROW
    WHEN (OLD.plugged_out_at IS DISTINCT FROM NEW.plugged_out_at) EXECUTE FUNCTION session_turned();
-- +goose StatementBegin
CREATE FUNCTION reckoned_reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reckoning SET look_at = 0 WHERE asset_id = NEW.asset_id AND to_at > NEW.at - 1800000000 AND from_at < NEW.at + 1800000000;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reckoned_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION reckoned_reading_corrected();
-- +only end
