-- The account that a payment goes to is fixed when the payment is asked for.
-- +goose Up

-- The key by which an organisation's accounts are compared without being opened. It is
-- sealed, so that it stays the same when the keys that seal are changed.
CREATE TABLE account_key (
    org_id UUID PRIMARY KEY,
    sealed BYTES NOT NULL
);

-- The keyed hash of sort code and account number; null for what was linked before, until the
-- store is next opened with its keys.
ALTER TABLE payee ADD COLUMN account BYTES;
CREATE INDEX payee_account ON payee (org_id, account);

-- The account of each attempt at a payment. It never changes.
CREATE TABLE withdrawal_payee (
    withdrawal_id UUID NOT NULL,
    attempt       INTEGER NOT NULL,
    org_id        UUID NOT NULL,
    site_id       UUID NOT NULL,
    sealed        BYTES NOT NULL,
    account       BYTES NOT NULL,
    ending        TEXT NOT NULL,
    linked_at     BIGINT NOT NULL,
    reference     TEXT NOT NULL,            -- what the bank statement calls the payment
    message       TEXT NOT NULL DEFAULT '', -- the payment file that it was first in
    PRIMARY KEY (withdrawal_id, attempt)
);
CREATE UNIQUE INDEX withdrawal_payee_reference ON withdrawal_payee (org_id, reference);
CREATE INDEX withdrawal_payee_site ON withdrawal_payee (site_id);

-- Who approved an attempt: above a limit it takes two.
CREATE TABLE withdrawal_approval (
    withdrawal_id UUID NOT NULL,
    attempt       INTEGER NOT NULL,
    org_id        UUID NOT NULL,
    approved_by   TEXT NOT NULL,
    approved_at   BIGINT NOT NULL,
    PRIMARY KEY (withdrawal_id, attempt, approved_by)
);
CREATE INDEX withdrawal_move_at ON withdrawal_move (org_id, at);

-- The form that asked for a withdrawal: sent again, it asks for no other.
CREATE TABLE withdrawal_form (
    org_id        UUID NOT NULL,
    site_id       UUID NOT NULL,
    form          TEXT NOT NULL,
    withdrawal_id UUID NOT NULL,
    PRIMARY KEY (org_id, site_id, form)
);

-- The addresses that a site's user had before, for a while.
CREATE TABLE former_email (
    site_id    UUID NOT NULL,
    org_id     UUID NOT NULL,
    email      TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (site_id, changed_at)
);

-- What was confirmed by a code holds for the browser that it was entered in.
ALTER TABLE balance_link DROP COLUMN confirmed;
ALTER TABLE balance_link ADD COLUMN confirmed_by BYTES;
