-- Who is plugged in is found by session_open. Without its condition this index was taken for it on
-- SQLite, and everything that was ever plugged in read.
-- +goose Up
DROP INDEX session_began;
CREATE INDEX session_began ON session (org_id, plugged_in_at) WHERE plugged_in_at > 0;
-- Whether prices are out that a fleet was not planned on is asked for often, and of all that ever were.
DROP INDEX publication_out;
CREATE INDEX publication_out ON publication (published_at, to_at);
