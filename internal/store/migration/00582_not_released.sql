-- Assets that did not go back after a dispatch are looked for each 15 seconds, of a day; that they did not stays for ever.
-- +goose Up
CREATE INDEX dispatch_asset_missing ON dispatch_asset (org_id, over_at) WHERE release = 'missing';
