-- A reading, or a report, that comes while its asset is deleted leaves nothing of it. One writer at a time needs no constraint for that.
-- +goose Up
-- +only postgres
ALTER TABLE reading_due ADD CONSTRAINT reading_due_asset FOREIGN KEY (asset_id) REFERENCES asset (id) ON DELETE CASCADE NOT VALID;
ALTER TABLE unreached ADD CONSTRAINT unreached_asset FOREIGN KEY (asset_id) REFERENCES asset (id) ON DELETE CASCADE NOT VALID;
DELETE FROM reading_due d WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = d.asset_id);
DELETE FROM unreached u WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = u.asset_id);
ALTER TABLE reading_due VALIDATE CONSTRAINT reading_due_asset;
ALTER TABLE unreached VALIDATE CONSTRAINT unreached_asset;
