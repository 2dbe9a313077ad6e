-- Limits of what a feeder gives to the grid, beside those of what it draws. A process of the version before takes a limit
-- of export for one of import until it is replaced.
-- +goose Up
ALTER TABLE cap_limit ADD COLUMN direction TEXT NOT NULL DEFAULT 'import';
-- Null for a link without a fallback of its export. One without a fallback of its import has the greatest cap there is.
ALTER TABLE cap_link ADD COLUMN export_fallback_w BIGINT;
ALTER TABLE adr_order ADD COLUMN direction TEXT NOT NULL DEFAULT 'import';
-- Whether a battery is to be planned anew at once, as what limits its feeder's export changed.
ALTER TABLE battery_plan ADD COLUMN again BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX dispatch_end ON dispatch (org_id, to_at);
