-- Months of the books: every transaction has the day on which it is booked, and a month that
-- is closed keeps its trial balance. Money of the organisation itself has a site of zeros.
-- +goose Up

ALTER TABLE org ADD COLUMN books_closed TEXT NOT NULL DEFAULT ''; -- the last closed month, YYYY-MM
ALTER TABLE ledger ADD COLUMN booked_on TEXT NOT NULL DEFAULT ''; -- a London day, YYYY-MM-DD
ALTER TABLE ledger ADD COLUMN counterparty TEXT NOT NULL DEFAULT ''; -- who owes or pays market money
ALTER TABLE ledger ADD COLUMN reference TEXT NOT NULL DEFAULT ''; -- the payer's own, of a receipt
ALTER TABLE ledger ADD COLUMN reason TEXT NOT NULL DEFAULT ''; -- why somebody decided it

-- What is there already is booked on the day that it is about, else on that of its record.
-- +only sqlite
DROP TRIGGER ledger_stays;
UPDATE ledger SET booked_on = COALESCE(settled_on, date(recorded_at / 1000000 + CASE WHEN
    recorded_at / 1000000 >= unixepoch(date(recorded_at / 1000000, 'unixepoch', 'start of year', '+2 months', '+24 days', 'weekday 0'), '+1 hour')
    AND recorded_at / 1000000 < unixepoch(date(recorded_at / 1000000, 'unixepoch', 'start of year', '+9 months', '+24 days', 'weekday 0'), '+1 hour')
    THEN 3600 ELSE 0 END, 'unixepoch'));
-- +goose StatementBegin
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a transaction is never changed'); END;
-- +goose StatementEnd
-- +only postgres
ALTER TABLE ledger DISABLE TRIGGER ledger_stays;
UPDATE ledger SET booked_on = COALESCE(settled_on, to_char(to_timestamp(recorded_at / 1000000) AT TIME ZONE 'Europe/London', 'YYYY-MM-DD'));
ALTER TABLE ledger ENABLE TRIGGER ledger_stays;
-- +only end

CREATE INDEX ledger_booked ON ledger (org_id, booked_on, id);

CREATE TABLE books_month (
    org_id        UUID NOT NULL REFERENCES org (id),
    month         TEXT NOT NULL, -- YYYY-MM
    closed_at     BIGINT NOT NULL,
    closed_by     TEXT NOT NULL,
    transactions  BIGINT NOT NULL, -- booked in it
    trial_balance TEXT NOT NULL,
    hash          BYTES NOT NULL, -- SHA-256 of the trial balance
    PRIMARY KEY (org_id, month)
) CLUSTERED;

-- +only sqlite
-- +goose StatementBegin
CREATE TRIGGER books_month_stays BEFORE UPDATE ON books_month BEGIN SELECT RAISE(ABORT, 'a closed month is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER books_month_kept BEFORE DELETE ON books_month BEGIN SELECT RAISE(ABORT, 'a closed month is never removed'); END;
-- +goose StatementEnd
-- +only postgres
CREATE TRIGGER books_month_stays BEFORE UPDATE OR DELETE ON books_month FOR EACH ROW EXECUTE FUNCTION books_stay();
CREATE TRIGGER books_month_kept BEFORE TRUNCATE ON books_month FOR EACH STATEMENT EXECUTE FUNCTION books_stay();
-- +only end
SELECT 1;
