-- A corrected reading has the events settled again that it tells of: those of its asset, and
-- for what is read at the boundary those of its whole site, also where it began long before
-- them. An event lies within a day, so that few are looked at.
-- +goose Up

-- +only sqlite
DROP TRIGGER event_reading_corrected;
-- +goose StatementBegin
CREATE TRIGGER event_reading_corrected AFTER UPDATE ON reading
BEGIN
    UPDATE flex_event SET look_at = 0
    WHERE org_id = (SELECT org_id FROM asset WHERE id = NEW.asset_id) AND asset_id = NEW.asset_id
        AND from_at > NEW.at - 91800000000 AND from_at < NEW.at + 1000000 * max(NEW.seconds, OLD.seconds, 1800) AND to_at > NEW.at - 1800000000;
    UPDATE flex_event SET look_at = 0
    WHERE NEW.label IN (2, 10, 13, 14)
        AND org_id = (SELECT org_id FROM asset WHERE id = NEW.asset_id) AND site_id = (SELECT site_id FROM asset WHERE id = NEW.asset_id)
        AND from_at > NEW.at - 91800000000 AND from_at < NEW.at + 1000000 * max(NEW.seconds, OLD.seconds, 1800) AND to_at > NEW.at - 1800000000;
END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION event_reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    until BIGINT := NEW.at + CAST(1000000 AS BIGINT) * greatest(NEW.seconds, OLD.seconds, 1800);
    org   UUID;
    site  UUID;
BEGIN
    SELECT org_id, site_id INTO org, site FROM asset WHERE id = NEW.asset_id;
    UPDATE flex_event SET look_at = 0
    WHERE org_id = org AND asset_id = NEW.asset_id AND from_at > NEW.at - 91800000000 AND from_at < until AND to_at > NEW.at - 1800000000;
    IF NEW.label IN (2, 10, 13, 14) THEN
        UPDATE flex_event SET look_at = 0
        WHERE org_id = org AND site_id = site AND from_at > NEW.at - 91800000000 AND from_at < until AND to_at > NEW.at - 1800000000;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +only end
SELECT 1;
