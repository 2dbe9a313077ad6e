-- Alerts: which kinds of exception wake somebody, whom, and what became of it.
-- +goose Up

-- What the operator changed of the rules that flexd has by itself. An organisation of zeros
-- stands for all.
CREATE TABLE alert_rule (
    kind      TEXT NOT NULL,    -- of exception
    org_id    UUID NOT NULL,
    enabled   BOOLEAN NOT NULL,
    threshold BIGINT NOT NULL,  -- of what the kind counts
    for_s     BIGINT NOT NULL,  -- seconds that it must last
    PRIMARY KEY (kind, org_id)
);

-- Whom flexd wakes, and how.
CREATE TABLE alert_route (
    id          UUID PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,    -- email, webhook, pagerduty, alertmanager
    target      TEXT NOT NULL,    -- a URL, or an e-mail address
    sealed      BYTES,            -- the secret that signs, or the key that PagerDuty gave; null if the kind has none
    level       TEXT NOT NULL,    -- the least that it is sent
    org_id      UUID NOT NULL,    -- whose alerts; zeros for all
    heartbeat_s BIGINT NOT NULL,  -- 0 for none
    beat_at     BIGINT NOT NULL,  -- the latest heartbeat
    created_at  BIGINT NOT NULL
);

-- One time that a rule's condition held, from its beginning to its end.
CREATE TABLE alert (
    id              UUID PRIMARY KEY,
    kind            TEXT NOT NULL,
    org_id          UUID NOT NULL,
    level           TEXT NOT NULL,
    count           BIGINT NOT NULL,
    title           TEXT NOT NULL,
    text            TEXT NOT NULL,
    since_at        BIGINT NOT NULL,
    latest_at       BIGINT NOT NULL,  -- when it was still so
    fired_at        BIGINT,           -- null until it has lasted as long as its rule asks
    round           INTEGER NOT NULL, -- how often it was sent: once, and after each time of rest
    resolved_at     BIGINT,
    acknowledged_at BIGINT,
    acknowledged_by TEXT NOT NULL,
    snoozed_to      BIGINT,
    note            TEXT NOT NULL
);
CREATE UNIQUE INDEX alert_open ON alert (kind, org_id) WHERE resolved_at IS NULL;

-- What is to be said of an alert by a route, once.
CREATE TABLE alert_message (
    id        UUID PRIMARY KEY,
    alert_id  UUID NOT NULL,    -- zeros for a test or a heartbeat
    route_id  UUID NOT NULL,
    what      TEXT NOT NULL,    -- firing, resolved, test, heartbeat
    round     INTEGER NOT NULL,
    queued_at BIGINT NOT NULL,
    sent_at   BIGINT,
    lost_at   BIGINT,           -- when it was given up
    tries     INTEGER NOT NULL,
    error     TEXT NOT NULL     -- of the latest attempt
);
CREATE UNIQUE INDEX alert_message_once ON alert_message (alert_id, route_id, what, round) WHERE what IN ('firing', 'resolved');
CREATE INDEX alert_message_old ON alert_message (queued_at);
