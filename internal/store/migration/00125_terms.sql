-- Terms are dated: each has the London day from which it holds. What was set before holds
-- from the beginning, except that a zero meant the default.
-- +goose Up

CREATE TABLE term (
    org_id   UUID NOT NULL REFERENCES org (id),
    name     TEXT NOT NULL,
    from_day TEXT NOT NULL, -- empty: from the beginning
    value    TEXT NOT NULL, -- as flexd org set takes it; empty: the default
    set_at   BIGINT,        -- null: before terms were dated
    set_by   TEXT NOT NULL,
    PRIMARY KEY (org_id, name, from_day)
) CLUSTERED;

-- +only sqlite
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, name, '', value, NULL, '' FROM (
    SELECT id, 'credit_pence_per_kwh' AS name, settings -> '$.CreditPencePerKWh' AS value FROM org
    UNION ALL SELECT id, 'user_share', settings -> '$.UserShare' FROM org
    UNION ALL SELECT id, 'min_withdrawal_pence', settings -> '$.MinWithdrawal' FROM org
    UNION ALL SELECT id, 'min_wait_days', settings -> '$.MinWaitDays' FROM org
    UNION ALL SELECT id, 'baseline', settings ->> '$.Settlement.Baseline' FROM org
    UNION ALL SELECT id, 'in_day', settings -> '$.Settlement.InDay' FROM org
    UNION ALL SELECT id, 'in_day_cap_wh', settings -> '$.Settlement.InDayCap' FROM org
    UNION ALL SELECT id, 'paid_early', settings -> '$.Settlement.PaidEarly' FROM org
    UNION ALL SELECT id, 'loss_factor', settings -> '$.Settlement.LossFactor' FROM org
    UNION ALL SELECT id, 'rounding', settings ->> '$.Settlement.Rounding' FROM org
    UNION ALL SELECT id, 'claw_back', settings -> '$.Settlement.ClawBack' FROM org) AS was
WHERE value NOT IN ('', '0', 'false');
-- +only postgres
INSERT INTO term (org_id, name, from_day, value, set_at, set_by)
SELECT id, name, '', value, NULL, '' FROM (
    SELECT id, 'credit_pence_per_kwh' AS name, settings::json ->> 'CreditPencePerKWh' AS value FROM org
    UNION ALL SELECT id, 'user_share', settings::json ->> 'UserShare' FROM org
    UNION ALL SELECT id, 'min_withdrawal_pence', settings::json ->> 'MinWithdrawal' FROM org
    UNION ALL SELECT id, 'min_wait_days', settings::json ->> 'MinWaitDays' FROM org
    UNION ALL SELECT id, 'baseline', settings::json -> 'Settlement' ->> 'Baseline' FROM org
    UNION ALL SELECT id, 'in_day', settings::json -> 'Settlement' ->> 'InDay' FROM org
    UNION ALL SELECT id, 'in_day_cap_wh', settings::json -> 'Settlement' ->> 'InDayCap' FROM org
    UNION ALL SELECT id, 'paid_early', settings::json -> 'Settlement' ->> 'PaidEarly' FROM org
    UNION ALL SELECT id, 'loss_factor', settings::json -> 'Settlement' ->> 'LossFactor' FROM org
    UNION ALL SELECT id, 'rounding', settings::json -> 'Settlement' ->> 'Rounding' FROM org
    UNION ALL SELECT id, 'claw_back', settings::json -> 'Settlement' ->> 'ClawBack' FROM org) AS was
WHERE value NOT IN ('', '0', 'false');
-- +only end
