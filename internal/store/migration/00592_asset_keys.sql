-- The keys of an asset's model and firmware where SQL's lower() cannot make them: SQLite, and PostgreSQL with the locale C, leave
-- what is beyond ASCII as it is. Null where it can. The next migration fills them, in Go.
-- +goose Up
ALTER TABLE asset ADD COLUMN model_key TEXT;
ALTER TABLE asset ADD COLUMN firmware_key TEXT;
