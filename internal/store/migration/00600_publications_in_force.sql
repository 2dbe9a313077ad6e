-- Publications stay for good. Those that reach beyond an instant, and the one that came in last, are found without reading all.
-- +goose Up
CREATE INDEX publication_ends ON publication (to_at, published_at);
CREATE INDEX publication_fetched ON publication (fetched_at, published_at);
