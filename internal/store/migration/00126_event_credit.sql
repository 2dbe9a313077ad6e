-- What each flex event is worth to its user and to the books, so that credits net over a month.
-- +goose Up

CREATE TABLE event_credit (
    flex_event_id UUID PRIMARY KEY,
    org_id        UUID NOT NULL,
    site_id       UUID NOT NULL,
    month         TEXT NOT NULL,    -- YYYY-MM, of the event's London day
    netted        BOOLEAN NOT NULL, -- with the others of its site and month
    listed        BOOLEAN NOT NULL, -- among what the user sees; not without a share
    gross         BIGINT NOT NULL,  -- pence of market revenue, as posted
    share         BIGINT NOT NULL,  -- the user's, below zero for an event that cost money
    early         BIGINT NOT NULL,  -- the part of it that is paid as of now
    credited      BIGINT NOT NULL,  -- posted to rewards_payable
    accrued       BIGINT NOT NULL   -- posted to rewards_accrued
) CLUSTERED;
CREATE INDEX event_credit_month ON event_credit (org_id, site_id, month) WHERE netted;

-- What was settled before is noted as it was posted, and nets with nothing.
INSERT INTO event_credit (flex_event_id, org_id, site_id, month, netted, listed, gross, share, early, credited, accrued)
SELECT e.id, e.org_id, e.site_id, substr(e.day, 1, 7), FALSE, TRUE,
    COALESCE((SELECT SUM(p.amount) FROM ledger l JOIN posting p ON p.ledger_id = l.id WHERE l.flex_event_id = e.id AND p.account = 'market_receivable'), 0),
    0, 0, COALESCE((SELECT -SUM(p.amount) FROM ledger l JOIN posting p ON p.ledger_id = l.id WHERE l.flex_event_id = e.id AND p.account = 'rewards_payable'), 0), 0
FROM flex_event e WHERE e.version > 0;

-- An organisation that was there before keeps crediting by event for the days of this month,
-- and nets by month from the first of the next one, by its own clock.
INSERT INTO term (org_id, name, from_day, value, set_at, set_by) SELECT id, 'crediting', '', 'event', NULL, '' FROM org;
-- +only sqlite
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, 'crediting', strftime('%Y-%m-%d', CAST(strftime('%s', 'now') AS INTEGER) + clock_offset / 1000000 + 86400, 'unixepoch', 'start of month', '+1 month'), '', NULL, '' FROM org;
-- +only postgres
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, 'crediting', to_char(date_trunc('month', now() AT TIME ZONE 'UTC' + (clock_offset / 1000000 + 86400) * interval '1 second') + interval '1 month', 'YYYY-MM-DD'), '', NULL, '' FROM org;
-- +only end
