-- Two who make the table of a week at once: the second may find its row type first.
-- +goose Up

-- +only postgres
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION make_reading_week(week BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
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
    WHEN duplicate_table OR duplicate_object OR unique_violation THEN
        RETURN FALSE;
END $$;
-- +goose StatementEnd
-- +only end
SELECT 1;
