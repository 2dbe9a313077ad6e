-- Organisations that go from this database to another (docs/cells.md): leaving (whole here, and nothing of it changes), arriving
-- (whole here, not yet served from here), or gone (served elsewhere; what is left of it here is deleted). What was booked is deleted then alone.
-- +goose Up
CREATE TABLE cell_move (
    org_id UUID PRIMARY KEY,
    state  TEXT NOT NULL,    -- leaving, arriving or gone
    other  TEXT NOT NULL,    -- the name of the other cell
    number BIGINT NOT NULL,  -- of the attempt: who has another does not go on
    at     BIGINT NOT NULL
);

-- +only sqlite
DROP TRIGGER ledger_kept;
-- +goose StatementBegin
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger
    WHEN NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = OLD.org_id AND m.state = 'gone')
BEGIN SELECT RAISE(ABORT, 'a transaction is never removed'); END;
-- +goose StatementEnd
DROP TRIGGER posting_kept;
-- +goose StatementBegin
CREATE TRIGGER posting_kept BEFORE DELETE ON posting
    WHEN NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = OLD.org_id AND m.state = 'gone')
BEGIN SELECT RAISE(ABORT, 'a posting is never removed'); END;
-- +goose StatementEnd
DROP TRIGGER withdrawal_move_kept;
-- +goose StatementBegin
CREATE TRIGGER withdrawal_move_kept BEFORE DELETE ON withdrawal_move
    WHEN NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = OLD.org_id AND m.state = 'gone')
BEGIN SELECT RAISE(ABORT, 'a move is never removed'); END;
-- +goose StatementEnd
DROP TRIGGER books_month_kept;
-- +goose StatementBegin
CREATE TRIGGER books_month_kept BEFORE DELETE ON books_month
    WHEN NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = OLD.org_id AND m.state = 'gone')
BEGIN SELECT RAISE(ABORT, 'a closed month is never removed'); END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION books_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = OLD.org_id AND m.state = 'gone') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'what is written in % is never changed or removed', TG_TABLE_NAME;
END $$;
-- +goose StatementEnd

-- The fence of an organisation that moves. Its triggers are made for a move and dropped at its end; the first argument
-- is the organisation, the second the column by which a row is known to be its own where that is not org_id.
-- +goose StatementBegin
CREATE FUNCTION cell_fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    org uuid := TG_ARGV[0];
    now text;
    own boolean := true;
    r record;
BEGIN
    IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
    SELECT m.state INTO now FROM cell_move m WHERE m.org_id = org;
    IF now IS NULL OR TG_OP = 'DELETE' AND now = 'gone' THEN
        RETURN r;
    END IF;
    IF TG_TABLE_NAME = 'job' AND TG_OP = 'UPDATE' THEN
        IF NEW.attempts > OLD.attempts THEN
            RETURN NULL; -- a claim takes the jobs of others alone
        END IF;
    END IF;
    IF TG_ARGV[1] = 'asset_id' THEN
        own := EXISTS (SELECT 1 FROM asset a WHERE a.id = r.asset_id AND a.org_id = org)
            OR EXISTS (SELECT 1 FROM former_asset a WHERE a.id = r.asset_id AND a.org_id = org);
    ELSIF TG_ARGV[1] = 'object_id' THEN
        own := EXISTS (SELECT 1 FROM adr_object o WHERE o.id = r.object_id AND o.org_id = org);
    END IF;
    IF own THEN
        RAISE EXCEPTION 'the organisation moves to another database' USING ERRCODE = 'FX001';
    END IF;
    RETURN r;
END $$;
-- +goose StatementEnd
-- +only end
SELECT 1;
