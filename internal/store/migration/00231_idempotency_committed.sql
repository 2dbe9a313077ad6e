-- How many transactions the request under a key has committed, so that whoever goes on with it after
-- its process is gone commits none of them again. holder = 0: free for the same request.
-- +goose Up
ALTER TABLE idempotency ADD COLUMN committed BIGINT NOT NULL DEFAULT 0;
