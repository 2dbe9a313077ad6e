-- What meters and devices told.
-- +goose Up

-- Readings lie in the order of time, so that a batch of now writes to one place. A reading's
-- organisation is its asset's.
CREATE TABLE reading (
    at       BIGINT NOT NULL,   -- where it begins; for a register, when it was read
    asset_id UUID NOT NULL,
    label    SMALLINT NOT NULL, -- by number; those below 10 are energies of half-hours
    seconds  INTEGER NOT NULL,  -- its length
    value    BIGINT NOT NULL,   -- millionths of the label's unit
    known_at BIGINT NOT NULL,   -- by the organisation's clock
    PRIMARY KEY (at, asset_id, label)
) CLUSTERED;

-- Readings at odd times are found by day and asset.
CREATE INDEX reading_day ON reading ((at / 86400000000), asset_id, label, at) WHERE label >= 10;

-- What a reading was before it was corrected.
CREATE TABLE reading_history (
    asset_id    UUID NOT NULL,
    at          BIGINT NOT NULL,
    label       SMALLINT NOT NULL,
    seconds     INTEGER NOT NULL,
    value       BIGINT NOT NULL,
    known_at    BIGINT NOT NULL,
    replaced_at BIGINT NOT NULL,
    PRIMARY KEY (asset_id, at, label, replaced_at)
) CLUSTERED;

-- The newest mark of each register, which none before it exceeds.
CREATE TABLE register (
    asset_id UUID NOT NULL,
    label    SMALLINT NOT NULL,
    at       BIGINT NOT NULL,
    value    BIGINT NOT NULL,
    PRIMARY KEY (asset_id, label)
) CLUSTERED;

-- Counts the assets that were taken away, so that a process knows when to forget whose
-- assets are whose.
ALTER TABLE org ADD COLUMN assets_gone BIGINT NOT NULL DEFAULT 0;

-- +only sqlite
-- +goose StatementBegin
CREATE TRIGGER reading_corrected AFTER UPDATE ON reading WHEN OLD.known_at < NEW.known_at
BEGIN
    INSERT INTO reading_history (asset_id, at, label, seconds, value, known_at, replaced_at)
    VALUES (OLD.asset_id, OLD.at, OLD.label, OLD.seconds, OLD.value, OLD.known_at, NEW.known_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER asset_gone AFTER DELETE ON asset
BEGIN
    UPDATE org SET assets_gone = assets_gone + 1 WHERE id = OLD.org_id;
END;
-- +goose StatementEnd
-- +only postgres
-- +goose StatementBegin
CREATE FUNCTION reading_corrected() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reading_history (asset_id, at, label, seconds, value, known_at, replaced_at)
    VALUES (OLD.asset_id, OLD.at, OLD.label, OLD.seconds, OLD.value, OLD.known_at, NEW.known_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER reading_corrected AFTER UPDATE ON reading FOR EACH ROW
    WHEN (OLD.known_at < NEW.known_at) EXECUTE FUNCTION reading_corrected();
-- +goose StatementBegin
CREATE FUNCTION asset_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE org SET assets_gone = assets_gone + 1 WHERE id = OLD.org_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER asset_gone AFTER DELETE ON asset FOR EACH ROW EXECUTE FUNCTION asset_gone();
-- +only end
