-- Lists that an operator wants to see again: the address of the page with its filters, under a name, for
-- themselves or for everybody who is an operator of an organisation.
-- +goose Up
CREATE TABLE saved_view (
    id          UUID PRIMARY KEY,
    operator_id UUID NOT NULL,
    name        TEXT NOT NULL,
    path        TEXT NOT NULL, -- of the page, with its filters
    org_id      UUID,          -- whose operators see it; null for the operator alone
    created_at  BIGINT NOT NULL
);
CREATE INDEX saved_view_operator ON saved_view (operator_id);
CREATE INDEX saved_view_org ON saved_view (org_id);
