-- Assets that were taken away: whose they were and where, for what was metered by them is
-- still to be settled.
-- +goose Up

CREATE TABLE former_asset (
    id      UUID PRIMARY KEY,
    org_id  UUID NOT NULL,
    site_id UUID NOT NULL,
    cop11   BOOLEAN NOT NULL, -- its own meter could settle it
    gone_at BIGINT NOT NULL
);
CREATE INDEX former_asset_site ON former_asset (org_id, site_id);

INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at)
    SELECT asset_id, org_id, site_id, FALSE, 0 FROM flex_event e WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = e.asset_id)
    ON CONFLICT (id) DO NOTHING;
INSERT INTO former_asset (id, org_id, site_id, cop11, gone_at)
    SELECT asset_id, org_id, site_id, FALSE, 0 FROM reckoning r WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = r.asset_id)
    ON CONFLICT (id) DO NOTHING;
