-- The audit log as a chain: each beginning and each end of an act is a link, whose hash covers the link and the
-- hash of the one before. What was written down before this migration is in no link.
-- +goose Up
CREATE TABLE audit_link (
    sequence BIGINT PRIMARY KEY, -- from 1 on, without a hole
    audit_id UUID NOT NULL,
    step     TEXT NOT NULL,      -- begun, ended
    text     TEXT NOT NULL,      -- what was written down, as JSON
    hash     TEXT NOT NULL       -- SHA-256, in hexadecimal, of the hash before, a line break and the text
);
CREATE INDEX audit_link_act ON audit_link (audit_id);

CREATE TABLE audit_head (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    sequence BIGINT NOT NULL,
    hash     TEXT NOT NULL
);
INSERT INTO audit_head (id, sequence, hash) VALUES (1, 0, '');
