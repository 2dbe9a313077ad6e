-- What a party tells of its pairs of metering points (MSIDs) and of the secondary BM units that they are in, from
-- day to day: the register that settlement keeps. The list is the party's own and is replaced whole.
-- +goose Up
CREATE TABLE msid_pair (
    org_id            UUID NOT NULL,
    import_mpan       TEXT NOT NULL,
    from_at           BIGINT NOT NULL,
    to_at             BIGINT,             -- null while it lasts
    export_mpan       TEXT NOT NULL,      -- empty: the site has none
    bm_unit           TEXT NOT NULL,      -- the secondary BM unit; empty: in none
    gsp_group         TEXT NOT NULL,      -- empty: as the directory has it
    supplier_mpid     TEXT NOT NULL,      -- of the import; empty: as the directory has it
    largest_export_wh BIGINT,             -- of any half-hour, as settlement has it; null: not told
    PRIMARY KEY (org_id, import_mpan, from_at)
) CLUSTERED;
