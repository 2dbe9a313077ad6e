-- What the instructions of a bound OpenADR program pay, in micro-pounds per MWh; 0: it was not said.
-- +goose Up
ALTER TABLE adr_binding ADD COLUMN price BIGINT NOT NULL DEFAULT 0;
