-- Money: transactions and their postings, which are never changed, and withdrawals.
-- +goose Up

CREATE TABLE ledger (
    id            UUID PRIMARY KEY,
    org_id        UUID NOT NULL REFERENCES org (id),
    site_id       UUID NOT NULL,
    key           TEXT NOT NULL,   -- what it is about, so that it happens once
    kind          TEXT NOT NULL,   -- the interface's transaction type
    credit        BIGINT NOT NULL, -- pence for the user; withdrawn is negative
    from_at       BIGINT,
    to_at         BIGINT,
    settled_on    TEXT,
    flex_wh       BIGINT,
    creditable_wh BIGINT,
    rate          BIGINT,          -- millionths of a penny per kWh
    vehicle       TEXT NOT NULL DEFAULT '',
    session_id    UUID,
    flex_event_id UUID,
    run_id        UUID,
    corrects      UUID,            -- the transaction that this one sets right
    follows       UUID,            -- the withdrawal that this is a step of
    decided_by    TEXT NOT NULL DEFAULT '',
    recorded_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX ledger_key ON ledger (org_id, key);
CREATE INDEX ledger_session ON ledger (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX ledger_event ON ledger (flex_event_id) WHERE flex_event_id IS NOT NULL;
CREATE INDEX ledger_site ON ledger (org_id, site_id, id) WHERE follows IS NULL;

CREATE TABLE posting (
    ledger_id UUID NOT NULL REFERENCES ledger (id),
    account   TEXT NOT NULL,
    org_id    UUID NOT NULL,
    site_id   UUID NOT NULL,
    amount    BIGINT NOT NULL CHECK (amount <> 0), -- a debit is positive
    PRIMARY KEY (ledger_id, account)
) CLUSTERED;
CREATE INDEX posting_site ON posting (org_id, site_id, account, amount);

-- A withdrawal is the ledger's transaction of the same id; here is where its payment stands.
CREATE TABLE withdrawal (
    id         UUID PRIMARY KEY REFERENCES ledger (id),
    org_id     UUID NOT NULL,
    site_id    UUID NOT NULL,
    amount     BIGINT NOT NULL,
    status     TEXT NOT NULL,
    moves      INTEGER NOT NULL, -- how often the status has changed
    attempt    INTEGER NOT NULL, -- of paying, from 1
    asked_at   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);
CREATE INDEX withdrawal_site ON withdrawal (org_id, site_id, id);
CREATE INDEX withdrawal_open ON withdrawal (org_id, status, id) WHERE status IN ('pending_approval', 'approved', 'processing');

CREATE TABLE withdrawal_move (
    withdrawal_id UUID NOT NULL REFERENCES withdrawal (id),
    number        INTEGER NOT NULL,
    org_id        UUID NOT NULL,
    status        TEXT NOT NULL,
    decided_by    TEXT NOT NULL,
    note          TEXT NOT NULL DEFAULT '',
    at            BIGINT NOT NULL,
    PRIMARY KEY (withdrawal_id, number)
) CLUSTERED;

-- What is written in the books stays.
-- +only sqlite
-- +goose StatementBegin
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a transaction is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'a transaction is never removed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'a posting is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER posting_kept BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'a posting is never removed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER withdrawal_move_stays BEFORE UPDATE ON withdrawal_move BEGIN SELECT RAISE(ABORT, 'a move is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER withdrawal_move_kept BEFORE DELETE ON withdrawal_move BEGIN SELECT RAISE(ABORT, 'a move is never removed'); END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE FUNCTION books_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what is written in % is never changed or removed', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_stays BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION books_stay();
CREATE TRIGGER ledger_kept BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION books_stay();
CREATE TRIGGER posting_stays BEFORE UPDATE OR DELETE ON posting FOR EACH ROW EXECUTE FUNCTION books_stay();
CREATE TRIGGER posting_kept BEFORE TRUNCATE ON posting FOR EACH STATEMENT EXECUTE FUNCTION books_stay();
CREATE TRIGGER withdrawal_move_stays BEFORE UPDATE OR DELETE ON withdrawal_move FOR EACH ROW EXECUTE FUNCTION books_stay();
-- +only end
