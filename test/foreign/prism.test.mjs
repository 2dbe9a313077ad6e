// Stories through prism, which refuses any answer that the document does not describe.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import newman from 'newman';
import { sandbox } from '../../clients/typescript/test/service.mjs';

const published = '../../internal/api/openapi.yaml';
let service, prism, address, token;

/** A port of the loopback that is free now. */
const freePort = () => new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});

/** Puts prism before a service: an answer that the document does not describe becomes an error. */
async function proxy(service, document = published) {
  const port = await freePort();
  const child = spawn(process.execPath, ['node_modules/@stoplight/prism-cli/dist/index.js', 'proxy', '--errors', '--validate-request=false',
    '-h', '127.0.0.1', '-p', String(port), document, service.address], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((ready, failed) => {
    child.once('exit', (code) => failed(new Error(`prism ended with ${code}`)));
    createInterface(child.stdout).on('line', (line) => { if (line.includes('Prism is listening')) ready(); });
  });
  return { address: `http://127.0.0.1:${port}`, stop: () => child.kill() };
}

before(async () => {
  service = await sandbox();
  prism = await proxy(service);
  address = prism.address;
});

after(async () => { prism?.stop(); await service?.stop(); });

async function call(method, path, body, want = 200) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const answer = await fetch(address + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.equal(answer.status, want, `${method} ${path}: ${text}`);
  return text && JSON.parse(text);
}

test('a story is as the document says', async () => {
  const form = new URLSearchParams({ username: service.username, password: service.password });
  token = (await (await fetch(service.address + '/auth/token-form', { method: 'POST', body: form })).json()).access_token;
  await call('GET', '/auth/users/me/');
  const made = await call('POST', '/entities/site/onboard', {
    site: { mpan: '1099000010005', postcode: 'ZZ99 1AA', street_address: '1 Sandbox Street', email: 'resident@example.com',
      gave_boundary_meter_consent_at: '2026-01-15T10:30:00Z' },
    assets: [{ external_id: 'my-charger', type: 'charger', properties: { power_kw: 7.4 } }], proposition: 'full_asset_schedule_control',
  });
  const site = made.site.site_id, asset = made.assets[0].asset_id;
  await call('POST', '/sandbox/clock', { local_time: '18:00:00' });
  await call('POST', `/entities/asset/${asset}/event/plug-in`, {
    tariff: { off_peak_times: '00:00-05:30, 23:30-24:00', timezone: 'Europe/London' },
    intent: { energy_required_kwh: 20, ready_by: '2026-01-01T07:00:00Z', charging_mode: 'minimise_charging_time' },
  });
  for (const path of ['schedule', 'schedule/explanation', 'price-curve', 'sessions', 'intent', 'charging-rate']) {
    await call('GET', `/entities/asset/${asset}/${path}`);
  }
  for (const path of ['', '/eligibility', '/flex-events', '/price-curve']) await call('GET', `/entities/site/${site}${path}`);
  for (const path of ['info', 'transactions', 'statement']) await call('GET', `/rewards/${site}/${path}`);
  for (const path of ['/market/curves', '/grid/envelope', '/grid/instructions', '/deliveries', '/operations/exceptions', '/data/readings/held']) await call('GET', path);
  await call('POST', '/sandbox/clock', { local_time: '07:00:00' });
  await call('POST', `/entities/asset/${asset}/event/plug-out`, {});
  await call('GET', '/entities/asset/00000000-0000-4000-8000-000000000001', undefined, 404);
});

/** Runs the Postman collection of a fresh sandbox through prism. */
async function collectionThrough(document) {
  const fresh = await sandbox();
  const before = await proxy(fresh, document);
  try {
    const collection = await (await fetch(fresh.address + '/docs/postman.json')).json();
    collection.variable.find(({ key }) => key === 'baseUrl').value = before.address;
    const envVar = [{ key: 'username', value: fresh.username }, { key: 'password', value: fresh.password }];
    return await new Promise((done, failed) => {
      newman.run({ collection, envVar }, (err, summary) => (err ? failed(err) : done({
        requests: summary.run.stats.requests.total, faults: summary.run.failures.map(({ source, error }) => `${source?.name}: ${error.message}`),
      })));
    });
  } finally {
    before.stop();
    await fresh.stop();
  }
}

test('every operation of the collection is answered as the document says', async () => {
  const { requests, faults } = await collectionThrough(published);
  assert.deepEqual(faults, []);
  assert.ok(requests > 100, `${requests} requests`);
});

test('prism finds an answer that lacks what the document wants', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'prism-'));
  try {
    const wrong = join(dir, 'wrong.yaml'), text = readFileSync(published, 'utf8');
    const planted = text.replace('required: [username, roles]', 'required: [username, roles, nowhere]');
    assert.notEqual(planted, text);
    writeFileSync(wrong, planted);
    const { faults } = await collectionThrough(wrong);
    assert.ok(faults.length > 0, 'nothing was found');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
