-- Confirmation of Payee: whom an organisation asks whether a bank account is in a user's name, and what was said of
-- each attempt at a payment.
-- +goose Up
CREATE TABLE payee_hook (
    org_id UUID PRIMARY KEY,
    url    TEXT NOT NULL,
    sealed BYTES NOT NULL, -- the secret that the request carries
    set_at BIGINT NOT NULL
);
CREATE TABLE payee_check (
    withdrawal_id UUID NOT NULL,
    attempt       INTEGER NOT NULL,
    org_id        UUID NOT NULL,
    site_id       UUID NOT NULL,
    verdict       TEXT NOT NULL,   -- match, close_match, no_match, unavailable
    sealed        BYTES NOT NULL,  -- the name that a close match told; empty for the others
    checked_at    BIGINT NOT NULL,
    overridden_by TEXT,            -- who lets a payment without a match be approved by another
    overridden_at BIGINT,
    reason        TEXT,
    PRIMARY KEY (withdrawal_id, attempt)
);
CREATE INDEX payee_check_org ON payee_check (org_id);
CREATE INDEX payee_check_site ON payee_check (site_id);
