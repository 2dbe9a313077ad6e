-- By how much the baseline behind an event's credit errs, and what its month's sum must be beyond.
-- +goose Up
ALTER TABLE event_credit ADD COLUMN day TEXT NOT NULL DEFAULT '';           -- London
ALTER TABLE event_credit ADD COLUMN error BIGINT NOT NULL DEFAULT 0;        -- standard error of early, thousandths of a penny
ALTER TABLE event_credit ADD COLUMN certainty BIGINT NOT NULL DEFAULT 0;    -- of its month, standard errors in millionths; 0: none is asked for
ALTER TABLE event_credit ADD COLUMN carry_months BIGINT NOT NULL DEFAULT 0; -- for how many months it is carried
UPDATE event_credit SET day = COALESCE((SELECT e.day FROM flex_event e WHERE e.id = event_credit.flex_event_id), month || '-01');

-- Of a line of a month that is netted, when it was posted: what was carried into the month and not
-- lapsed, in pence; the standard error of that and of the month's events together, in thousandths of
-- a penny; the certainty; and by how much the line changes what later months are credited.
ALTER TABLE ledger ADD COLUMN carried_in BIGINT;
ALTER TABLE ledger ADD COLUMN standard_error BIGINT;
ALTER TABLE ledger ADD COLUMN certainty BIGINT;
ALTER TABLE ledger ADD COLUMN later_credit BIGINT;

-- An organisation that was there before asks for no certainty in this month, and for the default's
-- from the first of the next one, by its own clock.
INSERT INTO term (org_id, name, from_day, value, set_at, set_by) SELECT id, 'certainty', '', '0', NULL, '' FROM org;
-- +only sqlite
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, 'certainty', strftime('%Y-%m-%d', CAST(strftime('%s', 'now') AS INTEGER) + clock_offset / 1000000 + 86400, 'unixepoch', 'start of month', '+1 month'), '', NULL, '' FROM org;
-- +only postgres
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, 'certainty', to_char(date_trunc('month', now() AT TIME ZONE 'UTC' + (clock_offset / 1000000 + 86400) * interval '1 second') + interval '1 month', 'YYYY-MM-DD'), '', NULL, '' FROM org;
-- +only end
