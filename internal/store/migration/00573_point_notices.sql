-- All parties that had a metering point, and an organisation's latest notices, are found by an index.
-- +goose Up
CREATE INDEX registration_of_point ON registration (point);
CREATE INDEX adr_notice_order ON adr_notice (org_id, id);
