-- PostgreSQL writes an updated row anew: with room for it on the same page it needs no new
-- entry in any index whose columns stay as they were.
-- +goose Up
-- +only postgres
ALTER TABLE session SET (fillfactor = 60);
ALTER TABLE outbox SET (fillfactor = 70);
-- +only end
SELECT 1;
