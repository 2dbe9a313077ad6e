-- An organisation's batteries, tanks and heat pumps are looked for at each wake-up, and its chargers are not read for that.
-- +goose Up
CREATE INDEX asset_batteries ON asset (org_id, id) WHERE type = 'battery';
CREATE INDEX asset_heat ON asset (org_id, id) WHERE type IN ('hot water tank', 'heat pump');

-- Plans that lack heat are looked for by the alerts, every 15 seconds.
CREATE INDEX tank_plan_cold ON tank_plan (org_id, asset_id) WHERE lack_wh > 0;
CREATE INDEX tank_plan_cold_room ON tank_plan (org_id, asset_id) WHERE lack_mk > 0;
