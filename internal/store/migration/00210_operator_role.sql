-- What an operator may do in the console: viewer, operator, finance or admin. Whoever is there already
-- could do everything, and still can.
-- +goose Up
ALTER TABLE operator ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';

-- When the person behind a session last showed who they are: acts on money and access ask again
-- after a while.
ALTER TABLE operator_session ADD COLUMN confirmed_at BIGINT NOT NULL DEFAULT 0;
-- Where the session was opened from, and when it was last used, to the minute.
ALTER TABLE operator_session ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE operator_session ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX operator_session_operator ON operator_session (operator_id);
