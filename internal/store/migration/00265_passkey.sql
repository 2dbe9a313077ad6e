-- Passkeys of operators (WebAuthn): only the public halves are here.
-- +goose Up
CREATE TABLE operator_passkey (
    id          BYTES PRIMARY KEY,            -- the credential's, as the authenticator chose it
    operator_id UUID NOT NULL REFERENCES operator (id),
    name        TEXT NOT NULL,                -- what the operator calls it
    public_key  BYTES NOT NULL,               -- COSE
    sign_count  BIGINT NOT NULL,              -- of the newest use; 0 where the authenticator counts none
    synced      BOOLEAN NOT NULL,             -- whether the authenticator may copy it to other devices
    made_at     BIGINT NOT NULL,
    used_at     BIGINT
);

CREATE INDEX operator_passkey_operator ON operator_passkey (operator_id);
