-- What binds an organisation's assets to each other: the most that they may draw together,
-- how many may begin to charge in a minute, and what was bought ahead.
-- +goose Up

CREATE TABLE caps (
    org_id       UUID PRIMARY KEY REFERENCES org (id),
    fleet_w      BIGINT,
    fleet_starts BIGINT NOT NULL,
    traded       TEXT NOT NULL,   -- JSON: [[start in seconds, Wh, buy, sell]], prices in micro-pounds per MWh
    version      BIGINT NOT NULL, -- counts the schedules that were made under the caps, and their changes
    due_at       BIGINT,          -- when the fleet is to be planned together again, by the organisation's clock
    planned_at   BIGINT,          -- when it was last
    leased_to    BIGINT NOT NULL DEFAULT 0, -- by the true clock
    shadow       TEXT NOT NULL DEFAULT ''   -- JSON: what room under each cap was worth then
);

CREATE TABLE cap_group (
    org_id UUID NOT NULL REFERENCES org (id),
    name   TEXT NOT NULL,
    cap_w  BIGINT,
    starts BIGINT NOT NULL,
    PRIMARY KEY (org_id, name)
);

-- The sites of each group. A site lies in one at most.
CREATE TABLE cap_site (
    site_id UUID PRIMARY KEY REFERENCES site (id) ON DELETE CASCADE,
    org_id  UUID NOT NULL,
    name    TEXT NOT NULL
);
CREATE INDEX cap_site_group ON cap_site (org_id, name);

-- The limits that caps set for a schedule, and which ones; a schedule that none held back
-- has no row.
CREATE TABLE binding (
    event_id UUID PRIMARY KEY,
    asset_id UUID NOT NULL,
    from_at  BIGINT NOT NULL,
    limits   TEXT NOT NULL, -- as a schedule's steps
    caps     TEXT NOT NULL  -- JSON
);
