-- When the boundary meter of a site may be used: the spans of the user's consent. Its records
-- say who told what and when; these say what holds. Spans of one site may overlap: an earlier
-- consent that was told later has a row of its own. All that are open end together, when the
-- consent is withdrawn. Until now none could be withdrawn.
-- +goose Up

CREATE TABLE consent_span (
    site_id  UUID NOT NULL,
    org_id   UUID NOT NULL,
    from_at  BIGINT NOT NULL, -- when the user gave it
    to_at    BIGINT,          -- when it was withdrawn or the site went; null while it holds
    known_at BIGINT NOT NULL, -- when it was recorded
    PRIMARY KEY (site_id, from_at)
) CLUSTERED;

INSERT INTO consent_span (site_id, org_id, from_at, known_at)
    SELECT c.site_id, c.org_id, c.given_at, min(c.recorded_at) FROM consent c
    WHERE c.kind = 'boundary meter' AND c.given_at IS NOT NULL GROUP BY c.site_id, c.org_id, c.given_at;
INSERT INTO consent_span (site_id, org_id, from_at, known_at)
    SELECT s.id, s.org_id, s.consent_at, s.consent_at FROM site s
    WHERE s.consent_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM consent_span c WHERE c.site_id = s.id AND c.from_at = s.consent_at);
