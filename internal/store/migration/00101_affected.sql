-- What a reading affects is worked out by the program: also a first reading, also of the days
-- that an event is compared with, also after the final run.
-- +goose Up

-- +only sqlite
DROP TRIGGER reckoned_reading_corrected;
DROP TRIGGER event_reading_corrected;
-- +only postgres
DROP TRIGGER reckoned_reading_corrected ON reading;
DROP TRIGGER event_reading_corrected ON reading;
DROP FUNCTION reckoned_reading_corrected();
DROP FUNCTION event_reading_corrected();
-- +only end
CREATE INDEX flex_event_time ON flex_event (org_id, from_at);
CREATE INDEX flex_event_priced ON flex_event (from_at);
CREATE INDEX reckoning_time ON reckoning (org_id, to_at);

