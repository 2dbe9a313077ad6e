-- Which party a metering point is with, and from when to when. At most one has it at a time; the
-- sandbox's own points, which all its organisations share, have no entry in point.
-- +goose Up
CREATE TABLE registration (
    id       UUID PRIMARY KEY,
    mpan     TEXT NOT NULL,
    point    TEXT,            -- the MPAN, where one party alone may have it
    org_id   UUID NOT NULL REFERENCES org (id),
    site_id  UUID,            -- null: the party has it and has not enrolled it yet
    from_at  BIGINT NOT NULL,
    to_at    BIGINT,          -- null while it lasts
    next_org UUID REFERENCES org (id), -- of a change of party that was decided
    next_at  BIGINT
);
CREATE UNIQUE INDEX registration_point ON registration (point) WHERE to_at IS NULL;
CREATE INDEX registration_org ON registration (org_id, from_at);
CREATE INDEX registration_site ON registration (site_id);
CREATE INDEX registration_next ON registration (next_at) WHERE next_at IS NOT NULL;

-- Of two that enrolled one point the first has it; flexd verify names the others.
INSERT INTO registration (id, mpan, point, org_id, site_id, from_at)
SELECT s.id, s.mpan, CASE WHEN s.mpan LIKE '10990000%' THEN NULL ELSE s.mpan END, s.org_id, s.id,
    (SELECT min(e.since) FROM enrolment e WHERE e.site_id = s.id AND e.state = 'enrolled')
FROM site s
WHERE s.mpan IS NOT NULL AND EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = s.id AND e.state = 'enrolled')
    AND (s.mpan LIKE '10990000%' OR NOT EXISTS (
        SELECT 1 FROM site t WHERE t.mpan = s.mpan AND t.id < s.id
            AND EXISTS (SELECT 1 FROM enrolment e WHERE e.site_id = t.id AND e.state = 'enrolled')));
