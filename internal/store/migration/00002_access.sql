-- Which web origins hold a component token, for the browsers' preflight requests.
-- +goose Up
CREATE INDEX token_origin ON token (origin, expires_at);
