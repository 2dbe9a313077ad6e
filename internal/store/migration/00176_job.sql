-- The work queue. What each kind of job is about lies in that kind's own tables.
-- +goose Up

CREATE TABLE job (
    kind      TEXT NOT NULL,
    org_id    UUID NOT NULL,
    subject   BYTES NOT NULL,             -- what it is about, unique in its kind and organisation
    site_id   UUID,                       -- the site that it concerns, if it is one's
    due_at    BIGINT,                     -- not before; while it is claimed, the end of the lease; null: it failed for good
    lease     BIGINT NOT NULL,            -- rises with every claim and every change
    attempts  INTEGER NOT NULL DEFAULT 0, -- claims since it was queued
    cause     TEXT NOT NULL DEFAULT '',
    error     TEXT NOT NULL DEFAULT '',   -- of the latest attempt
    queued_at BIGINT NOT NULL,
    failed_at BIGINT,                     -- of the latest attempt that failed
    PRIMARY KEY (kind, org_id, subject)
) CLUSTERED;
CREATE INDEX job_due ON job (kind, due_at, org_id) WHERE due_at IS NOT NULL;
CREATE INDEX job_failed ON job (failed_at) WHERE due_at IS NULL;
