-- A page of an organisation's withdrawals, and those at a status, are found without reading all that were ever paid.
-- +goose Up
CREATE INDEX withdrawal_order ON withdrawal (org_id, id);
CREATE INDEX withdrawal_status ON withdrawal (org_id, status, id);
CREATE INDEX withdrawal_payee_message ON withdrawal_payee (org_id, message) WHERE message <> '';
