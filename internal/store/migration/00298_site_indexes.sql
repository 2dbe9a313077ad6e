-- What is asked for by MPAN or by site is found without reading all of an organisation: who has an MPAN (at each enrolment), a
-- site's statement (the index that was there left out the entries that follow others), its settled sessions, its pauses, and the tokens and
-- links that go with a site.
-- +goose Up
CREATE INDEX registration_mpan ON registration (mpan);
DROP INDEX ledger_site;
CREATE INDEX ledger_site ON ledger (org_id, site_id, id);
CREATE INDEX pause_site ON pause (site_id, from_at);
CREATE INDEX token_site ON token (site_id) WHERE site_id IS NOT NULL;
CREATE INDEX cloud_link_site ON cloud_link (site_id);
CREATE INDEX reckoning_posted ON reckoning (site_id, from_at) WHERE posted > 0;
