-- Market money: a receipt, or what is written off of it, says for which month it is.
-- +goose Up
ALTER TABLE ledger ADD COLUMN for_month TEXT NOT NULL DEFAULT ''; -- YYYY-MM; empty where settled_on says it
