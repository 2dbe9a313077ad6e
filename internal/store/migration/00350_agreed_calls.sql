-- How often a household agreed to be called by instructions of the grid in a London day and a calendar month; null for no limit.
-- +goose Up
ALTER TABLE site ADD COLUMN calls_day BIGINT;
ALTER TABLE site ADD COLUMN calls_month BIGINT;
-- Few sites have a limit, and each instruction asks for them.
CREATE INDEX site_calls ON site (org_id) WHERE calls_day IS NOT NULL OR calls_month IS NOT NULL;

-- Sites that an instruction left out as they had had the calls they agreed to, and which limits those were.
ALTER TABLE instruction ADD COLUMN spent_sites BIGINT NOT NULL DEFAULT 0;
ALTER TABLE instruction ADD COLUMN spent TEXT NOT NULL DEFAULT '';
