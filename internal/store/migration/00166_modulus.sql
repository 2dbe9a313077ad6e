-- The published tables by which bank accounts are checked, as the operator gave them.
-- +goose Up
CREATE TABLE modulus_table (
    kind        TEXT PRIMARY KEY,   -- weights or substitutes
    content     TEXT NOT NULL,
    imported_at BIGINT NOT NULL
);
