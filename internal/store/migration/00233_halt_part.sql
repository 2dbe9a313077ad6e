-- A halt of a part of what is sent, beside the one of everything: the same table, so that a release that
-- does not know of parts stops everything while there is one, and nothing leaves that should not.
-- +goose Up
ALTER TABLE halt RENAME TO halt_before;
CREATE TABLE halt (
    scope     TEXT PRIMARY KEY DEFAULT 'all', -- all, organisation/ID, endpoint/ID/NAME, model/NAME or gsp-group/GROUP
    id        BIGINT NOT NULL UNIQUE,         -- 1 of everything
    at        BIGINT NOT NULL,
    who       TEXT NOT NULL,
    reason    TEXT NOT NULL,
    needs_two INTEGER NOT NULL DEFAULT 0,
    asked_by  TEXT NOT NULL DEFAULT '', -- who asked for its end
    asked_at  BIGINT
);
INSERT INTO halt (id, at, who, reason, needs_two, asked_by, asked_at)
    SELECT id, at, who, reason, needs_two, asked_by, asked_at FROM halt_before;
DROP TABLE halt_before;
