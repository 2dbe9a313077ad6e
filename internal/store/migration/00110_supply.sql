-- What a site's connection can carry. A site without a row has the default. Each change is a
-- row of its own, so that a settlement as it was known knows the capacity of then; the rows
-- stay when the site goes, for what was metered there is still settled.
-- +goose Up

CREATE TABLE supply (
    site_id  UUID NOT NULL,
    org_id   UUID NOT NULL,
    import_w BIGINT NOT NULL,
    export_w BIGINT NOT NULL,
    known_at BIGINT NOT NULL, -- by the organisation's clock
    PRIMARY KEY (site_id, known_at)
) CLUSTERED;

-- The newest of them, beside the site.
ALTER TABLE site ADD COLUMN import_w BIGINT NOT NULL DEFAULT 23000;
ALTER TABLE site ADD COLUMN export_w BIGINT NOT NULL DEFAULT 23000;
