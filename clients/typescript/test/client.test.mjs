import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as flexd from '../dist/index.js';
import { zIntent, zPlainDispatchPeriod } from '../dist/generated/zod.gen.js';
import { sandbox } from './service.mjs';

let service;
let client;

before(async () => {
  service = await sandbox();
  client = flexd.connect(service.address, service.username, service.password);
});

after(() => service?.stop());

/** The options of a call that has to succeed. */
const call = (more = {}) => ({ client, throwOnError: true, ...more });

/** Registers a home with one charger, and returns the charger's id. */
async function home() {
  const { data } = await flexd.onboardEntitiesSiteOnboardPost(call({
    body: {
      site: {
        mpan: '1099000010005', postcode: 'ZZ99 1AA', street_address: '1 Sandbox Street', email: 'resident@example.com',
        gave_boundary_meter_consent_at: '2026-01-15T10:30:00Z',
      },
      assets: [{ external_id: 'my-charger', type: 'charger', properties: { power_kw: 7.4 } }],
      proposition: 'full_asset_schedule_control',
    },
  }));
  return data.assets[0].asset_id;
}

test('a car is plugged in, planned and charged', async () => {
  const me = await flexd.readUsersMeAuthUsersMeGet(call());
  assert.equal(me.data.username, 'acme');

  const path = { asset_id: await home() };
  await flexd.setClock(call({ body: { local_time: '18:00:00' } }));
  const event = await flexd.assetPlugInEventEntitiesAssetAssetIdEventPlugInPost(call({
    path,
    body: {
      tariff: { off_peak_times: '00:00-05:30, 23:30-24:00', timezone: 'Europe/London' },
      intent: { energy_required_kwh: 20, ready_by: '2026-01-01T07:00:00Z', charging_mode: 'minimise_charging_time' },
    },
  }));
  assert.ok(event.response.ok);

  // Each of these answers is checked by its schema, instants and nulls among them.
  const schedule = await flexd.getSchedule(call({ path }));
  assert.ok(schedule.data.periods.length > 1);
  await flexd.explainSchedule(call({ path }));
  await flexd.getPriceCurveEntitiesAssetAssetIdPriceCurveGet(call({ path }));
  await flexd.getSessions(call({ path }));
  await flexd.getMarketCurves(call());

  const { data: clock } = await flexd.getClock(call());
  const end = new Date(Math.floor(Date.parse(clock.now) / 1_800_000) * 1_800_000);
  const readings = Array.from({ length: 4 }, (_, i) => ({
    asset_id: path.asset_id, label: 'charger_consumption_energy_kwh', value: 0,
    start_timestamp: new Date(end - (i + 1) * 1_800_000).toISOString(), end_timestamp: new Date(end - i * 1_800_000).toISOString(),
  }));
  const verdicts = await flexd.postReadingsDataReadingsPost(call({ body: { readings } }));
  assert.equal(verdicts.data.responses.length, 4);
});

test('a refusal is the answer as the document has it', async () => {
  const { error, response } = await flexd.getAssetEntitiesAssetAssetIdGet({
    client, path: { asset_id: '00000000-0000-4000-8000-000000000001' },
  });
  assert.equal(response.status, 404);
  assert.equal(typeof error.detail, 'string');
});

test('a wrong password is refused', async () => {
  const stranger = flexd.connect(service.address, 'acme', 'wrong');
  await assert.rejects(flexd.readUsersMeAuthUsersMeGet({ client: stranger, throwOnError: true }), { code: 'unauthorized' });
});

test('what no schema takes is not sent', async () => {
  assert.equal(zIntent.safeParse({ energy_required_kwh: -1, ready_by: '2026-01-01T07:00:00Z' }).success, false);
  await assert.rejects(flexd.setClock(call({ body: { local_time: 18 } })));
});

test('an instant may have an offset', () => {
  for (const offset of ['Z', '+00:00', '+01:00']) {
    const period = { start_timestamp: '2026-07-01T00:00:00' + offset, end_timestamp: '2026-07-01T05:30:00' + offset, action: 'CHARGE' };
    assert.ok(zPlainDispatchPeriod.safeParse(period).success, offset);
  }
});
