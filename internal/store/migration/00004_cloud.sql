-- Access to manufacturers' clouds, given by users for their sites. What is sealed can be
-- read with the house's key alone.
-- +goose Up
CREATE TABLE cloud_link (
    state      BYTES PRIMARY KEY, -- SHA-256 of what the browser carries
    org_id     UUID NOT NULL,
    site_id    UUID NOT NULL REFERENCES site (id),
    provider   TEXT NOT NULL,
    redirect   TEXT NOT NULL,
    sealed     BYTES NOT NULL,    -- the verifier, and the code once it has come
    turn_at    BIGINT,            -- when to exchange the code; null until it has come
    expires_at BIGINT NOT NULL
);
CREATE INDEX cloud_link_turn ON cloud_link (turn_at) WHERE turn_at IS NOT NULL;
CREATE INDEX cloud_link_expiry ON cloud_link (expires_at);

CREATE TABLE cloud_token (
    org_id     UUID NOT NULL,
    site_id    UUID NOT NULL REFERENCES site (id),
    provider   TEXT NOT NULL,     -- empty if the client brought the token
    token_type TEXT NOT NULL,
    sealed     BYTES NOT NULL,    -- access and refresh token
    expires_at BIGINT,            -- null if not known
    turn_at    BIGINT,            -- when to refresh it; null for never
    PRIMARY KEY (site_id, provider)
);
CREATE INDEX cloud_token_turn ON cloud_token (turn_at) WHERE turn_at IS NOT NULL;
