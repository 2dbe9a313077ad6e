-- Organisations, who may act for them, sites, assets, enrolments, prices.
-- UUID and BYTES stand for the engine's own types, CLUSTERED for a table kept in the
-- order of its key; instants are microseconds since 1970 in UTC; a day is YYYY-MM-DD.
-- +goose Up
CREATE TABLE org (
    id             UUID PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    clock_offset   BIGINT NOT NULL DEFAULT 0,
    clock_held     BOOLEAN NOT NULL DEFAULT FALSE,
    consent_exempt BOOLEAN NOT NULL DEFAULT FALSE,
    settings       TEXT NOT NULL DEFAULT '{}',
    created_at     BIGINT NOT NULL
);

CREATE TABLE credential (
    username    TEXT PRIMARY KEY,
    org_id      UUID NOT NULL REFERENCES org (id),
    secret_hash BYTES NOT NULL,
    roles       TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    revoked_at  BIGINT
);

-- Tokens live by the true clock, whatever an organisation's sandbox clock says.
CREATE TABLE token (
    hash       BYTES PRIMARY KEY,
    org_id     UUID NOT NULL REFERENCES org (id),
    username   TEXT NOT NULL,
    roles      TEXT NOT NULL,
    site_id    UUID,
    origin     TEXT NOT NULL DEFAULT '',
    expires_at BIGINT NOT NULL
);
CREATE INDEX token_expiry ON token (expires_at);

CREATE TABLE site (
    id               UUID PRIMARY KEY,
    org_id           UUID NOT NULL REFERENCES org (id),
    mpan             TEXT,
    postcode         TEXT NOT NULL DEFAULT '',
    address          TEXT NOT NULL DEFAULT '',
    address_key      TEXT,
    email            TEXT NOT NULL DEFAULT '',
    consent_at       BIGINT,
    tariff_type      TEXT NOT NULL DEFAULT '',
    cheap_start      TEXT NOT NULL DEFAULT '',
    cheap_end        TEXT NOT NULL DEFAULT '',
    external_user_id TEXT,
    created_at       BIGINT NOT NULL
);
CREATE UNIQUE INDEX site_mpan ON site (org_id, mpan);
CREATE UNIQUE INDEX site_user ON site (org_id, external_user_id);
CREATE INDEX site_address ON site (org_id, address_key);
CREATE INDEX site_postcode ON site (org_id, postcode);
CREATE INDEX site_order ON site (org_id, id);

-- Every consent ever given or withdrawn; the site row holds the one in force.
CREATE TABLE consent (
    id          UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    site_id     UUID NOT NULL,
    kind        TEXT NOT NULL, -- 'boundary meter', or a dispatch method
    given_at    BIGINT,        -- null when withdrawn
    recorded_at BIGINT NOT NULL
);
CREATE INDEX consent_site ON consent (org_id, site_id, id);

CREATE TABLE dispatch_method (
    org_id       UUID NOT NULL,
    site_id      UUID NOT NULL REFERENCES site (id),
    method       TEXT NOT NULL,
    consented_at BIGINT NOT NULL,
    PRIMARY KEY (site_id, method)
);

CREATE TABLE enrolment (
    org_id      UUID NOT NULL,
    site_id     UUID NOT NULL REFERENCES site (id),
    proposition TEXT NOT NULL,
    state       TEXT NOT NULL,
    since       BIGINT NOT NULL,
    PRIMARY KEY (site_id, proposition)
);

CREATE TABLE enrolment_change (
    id          UUID PRIMARY KEY,
    org_id      UUID NOT NULL,
    site_id     UUID NOT NULL,
    proposition TEXT NOT NULL,
    state       TEXT NOT NULL,
    at          BIGINT NOT NULL
);
CREATE INDEX enrolment_change_site ON enrolment_change (org_id, site_id, id);

CREATE TABLE asset (
    id            UUID PRIMARY KEY,
    org_id        UUID NOT NULL REFERENCES org (id),
    site_id       UUID NOT NULL REFERENCES site (id),
    external_id   TEXT NOT NULL,
    type          TEXT NOT NULL,
    power_w       BIGINT,
    capacity_wh   BIGINT,
    model         TEXT NOT NULL DEFAULT '',
    installed_on  TEXT NOT NULL DEFAULT '',
    serial_number TEXT NOT NULL DEFAULT '',
    created_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX asset_external ON asset (org_id, external_id);
CREATE INDEX asset_site ON asset (site_id);
CREATE INDEX asset_order ON asset (org_id, id);

-- The catalogue of asset models and the directory of metering points belong to the house,
-- not to an organisation.
CREATE TABLE model (
    key         TEXT PRIMARY KEY, -- the name in lower case
    name        TEXT NOT NULL,
    type        TEXT NOT NULL,
    cop11       BOOLEAN NOT NULL,
    power_w     BIGINT,
    capacity_wh BIGINT
);

CREATE TABLE meter (
    mpan          TEXT PRIMARY KEY,
    import        BOOLEAN NOT NULL,
    address       TEXT NOT NULL,
    postcode      TEXT NOT NULL,
    uprn          TEXT NOT NULL DEFAULT '',
    energised     BOOLEAN NOT NULL,
    half_hourly   BOOLEAN NOT NULL,
    domestic      BOOLEAN NOT NULL,
    supplier_mpid TEXT NOT NULL DEFAULT '',
    supplier_name TEXT NOT NULL DEFAULT '',
    gsp_group     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX meter_postcode ON meter (postcode);

-- A publication is one version of a stretch of prices. For any half-hour the latest
-- publication that is out holds, as a whole: a price it leaves out is unknown.
CREATE TABLE publication (
    id           UUID PRIMARY KEY,
    source       TEXT NOT NULL,
    published_at BIGINT NOT NULL, -- when it counts as known
    fetched_at   BIGINT NOT NULL,
    from_at      BIGINT NOT NULL,
    to_at        BIGINT NOT NULL
);
CREATE INDEX publication_out ON publication (published_at);

CREATE TABLE price (
    start_at       BIGINT NOT NULL,
    publication_id UUID NOT NULL REFERENCES publication (id),
    price          BIGINT, -- millionths of a pound per MWh; null is missing
    derived        BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (start_at, publication_id)
) CLUSTERED;

-- Answers of requests that carried an Idempotency-Key, by the true clock.
CREATE TABLE idempotency (
    org_id     UUID NOT NULL,
    key        TEXT NOT NULL,
    request    BYTES NOT NULL, -- SHA-256 of method, path and body
    status     INTEGER NOT NULL, -- 0 while in flight
    answer     BYTES,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, key)
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at);
