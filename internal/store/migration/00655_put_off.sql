-- What background jobs could not do and try again later: until when, why, and how often it failed. The mark by which each is found is
-- set to the same instant, so that a row whose record has another mark is out of date.
-- +goose Up
CREATE TABLE put_off (
    org_id   UUID NOT NULL,
    kind     TEXT NOT NULL,
    id       UUID NOT NULL, -- a session, a pause, a flex event or a dispatch
    part     UUID NOT NULL, -- of a dispatch: its asset; else zero
    until_at BIGINT NOT NULL,
    error    TEXT NOT NULL,
    tries    BIGINT NOT NULL,
    PRIMARY KEY (org_id, kind, id, part)
);
-- When the flex event of a pause is looked for again, if it was put off.
ALTER TABLE pause ADD COLUMN detect_at BIGINT;
CREATE INDEX pause_put_off ON pause (org_id, detect_at) WHERE detect_at IS NOT NULL;
