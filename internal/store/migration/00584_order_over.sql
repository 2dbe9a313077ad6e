-- Orders whose retention is over are found without reading the rest.
-- +goose Up
CREATE INDEX adr_order_over ON adr_order (to_at);
