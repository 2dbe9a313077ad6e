-- The page on which a user sees the balance and has it paid out.
-- +goose Up

-- A user's bank account. What names it is sealed; ending is what a page may show of it.
CREATE TABLE payee (
    site_id    UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    sealed     BYTES NOT NULL,
    ending     TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);

-- A link to the page, which lives for a while and may be used again meanwhile. Only the
-- token's hash is kept.
CREATE TABLE balance_link (
    hash              BYTES PRIMARY KEY,
    org_id            UUID NOT NULL,
    site_id           UUID NOT NULL,
    expires_at        BIGINT NOT NULL, -- by the organisation's clock
    redirect_uri      TEXT NOT NULL,
    hide_transactions BOOLEAN NOT NULL,
    setup             BOOLEAN NOT NULL, -- begins with the bank account, if there is none
    two_factor        BOOLEAN NOT NULL, -- the e-mail code stands before bank account and withdrawal
    code_hash         BYTES,            -- of the code sent last
    code_until        BIGINT,
    code_tries        INTEGER NOT NULL DEFAULT 0,
    confirmed         BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX balance_link_expiry ON balance_link (org_id, expires_at);

-- Letters to users, until they are sent; then the text is gone.
CREATE TABLE mail (
    id         UUID PRIMARY KEY,
    org_id     UUID NOT NULL,
    site_id    UUID NOT NULL,
    recipient  TEXT NOT NULL,
    subject    TEXT NOT NULL,
    text       TEXT NOT NULL,
    queued_at  BIGINT NOT NULL, -- these by the true clock
    turn_at    BIGINT,          -- not sent before; null: sent, or given up
    tries      INTEGER NOT NULL DEFAULT 0,
    error      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX mail_turn ON mail (turn_at) WHERE turn_at IS NOT NULL;
