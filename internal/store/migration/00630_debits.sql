-- The bank's names of the entries that took a payment from the payer's account, a line each: a second one is a payment made twice.
-- The tokens of a credential are found without reading those of all, and how far a source's prices go without reading all its publications.
-- A page of what was done to an organisation is found without reading what was done to others.
-- +goose Up
ALTER TABLE withdrawal_payee ADD COLUMN debits TEXT NOT NULL DEFAULT '';
CREATE INDEX token_username ON token (username);
CREATE INDEX publication_through ON publication (source, to_at);
CREATE INDEX audit_org ON audit (org_id, id);
