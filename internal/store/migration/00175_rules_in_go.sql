-- What a session's end and an asset's removal lead to is done by the program, in plain sight:
-- tx.CloseSession, tx.ReopenSession and tx.DropAsset.
-- +goose Up

-- +only sqlite
DROP TRIGGER session_ended;
DROP TRIGGER session_reopened;
DROP TRIGGER asset_gone;
-- +only postgres
DROP TRIGGER session_turned ON session;
DROP FUNCTION session_turned();
DROP TRIGGER asset_gone ON asset;
DROP FUNCTION asset_gone();
-- SQLite has it since the table was made.
CREATE TRIGGER withdrawal_move_kept BEFORE TRUNCATE ON withdrawal_move FOR EACH STATEMENT EXECUTE FUNCTION books_stay();
-- +only end
SELECT 1;
