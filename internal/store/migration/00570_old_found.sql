-- What is past its retention, or waits for somebody, is found without reading all that is kept: of readings' histories and of held
-- readings that were all rows, again and again, in the transaction that deletes readings.
-- +goose Up
CREATE INDEX reading_history_at ON reading_history (at);
CREATE INDEX held_reading_at ON held_reading (held_at);
CREATE INDEX held_reading_waiting ON held_reading (held_at, id) WHERE decision = '';
