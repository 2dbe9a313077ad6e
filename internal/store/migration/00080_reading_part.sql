-- On PostgreSQL readings lie in a table for each week, so that what is written together lies
-- together, and a week whose time is over goes at a stroke.
-- +goose Up
-- +only postgres
ALTER TABLE reading RENAME TO reading_before;
ALTER INDEX reading_pkey RENAME TO reading_before_pkey;
ALTER INDEX reading_day RENAME TO reading_before_day;
DROP TRIGGER reading_corrected ON reading_before;
DROP TRIGGER reckoned_reading_corrected ON reading_before;
DROP TRIGGER event_reading_corrected ON reading_before;

CREATE TABLE reading (LIKE reading_before, PRIMARY KEY (at, asset_id, label)) PARTITION BY RANGE (at);
CREATE INDEX reading_day ON reading ((at / 86400000000), asset_id, label, at) WHERE label >= 10;
CREATE TRIGGER reading_corrected AFTER UPDATE ON reading FOR EACH ROW
    WHEN (OLD.known_at < NEW.known_at) EXECUTE FUNCTION reading_corrected();
CREATE TRIGGER reckoned_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION reckoned_reading_corrected();
CREATE TRIGGER event_reading_corrected AFTER UPDATE ON reading FOR EACH ROW EXECUTE FUNCTION event_reading_corrected();

-- What there was before stays where it lies, as the first of the tables.
-- +goose StatementBegin
DO $$
DECLARE
    until BIGINT;
BEGIN
    SELECT (max(at) / 604800000000 + 1) * 604800000000 INTO until FROM reading_before;
    IF until IS NULL THEN
        DROP TABLE reading_before;
    ELSE
        EXECUTE format('ALTER TABLE reading ATTACH PARTITION reading_before FOR VALUES FROM (MINVALUE) TO (%s)', until);
    END IF;
END $$;
-- +goose StatementEnd

-- What no week was made for: nothing, as a rule.
CREATE TABLE reading_rest PARTITION OF reading DEFAULT;

-- Makes the table of a week, counted from 1970, and reports whether there is nothing to make:
-- it is there, or its readings lie in another. Who else made it meanwhile is let go first.
-- +goose StatementBegin
CREATE FUNCTION make_reading_week(week BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    name TEXT := 'reading_w' || week;
BEGIN
    IF to_regclass(name) IS NOT NULL THEN
        RETURN TRUE;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE reading INCLUDING ALL)', name);
    EXECUTE format('ALTER TABLE reading ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        name, week * 604800000000, (week + 1) * 604800000000);
    RETURN FALSE;
EXCEPTION
    WHEN check_violation OR invalid_object_definition THEN
        RETURN TRUE;
    WHEN duplicate_table OR unique_violation THEN
        RETURN FALSE;
END $$;
-- +goose StatementEnd

-- Drops the table of a week, unless somebody holds on to it, and reports whether it did.
-- +goose StatementBegin
CREATE FUNCTION drop_reading_week(name TEXT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '1s', TRUE);
    EXECUTE format('DROP TABLE %I', name);
    PERFORM set_config('lock_timeout', '0', TRUE);
    RETURN TRUE;
EXCEPTION
    WHEN lock_not_available OR undefined_table THEN
        RETURN FALSE;
END $$;
-- +goose StatementEnd
-- +only end
SELECT 1;
