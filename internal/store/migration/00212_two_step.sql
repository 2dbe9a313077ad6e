-- Operators' second step at the login: a code of the minute from an app (RFC 6238), or a recovery code.
-- +goose Up
CREATE TABLE operator_totp (
    operator_id  UUID PRIMARY KEY REFERENCES operator (id),
    sealed       BYTES NOT NULL,              -- the secret
    created_at   BIGINT NOT NULL,
    confirmed_at BIGINT,                      -- when the first code was right; logins ask from then on
    last_step    BIGINT NOT NULL DEFAULT 0,   -- of the newest code that was taken: none is taken twice
    wrong        INTEGER NOT NULL DEFAULT 0,  -- codes tried in a row since wrong_since
    wrong_since  BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE operator_recovery (
    operator_id UUID NOT NULL REFERENCES operator (id),
    hash        BYTES NOT NULL,               -- SHA-256 of the code
    used_at     BIGINT,
    PRIMARY KEY (operator_id, hash)
);

-- A session whose password was right and whose code is awaited opens nothing.
ALTER TABLE operator_session ADD COLUMN awaits_code INTEGER NOT NULL DEFAULT 0;
