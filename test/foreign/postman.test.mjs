// newman runs the Postman collection in one go from a fresh sandbox: first with the
// collection's own tests, then with the contract tests that portman makes of the document.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import newman from 'newman';
import { sandbox } from '../../clients/typescript/test/service.mjs';

let service, dir;
before(async () => {
  service = await sandbox();
  dir = mkdtempSync(join(tmpdir(), 'portman-'));
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const collectionOf = async ({ address }) => (await fetch(address + '/docs/postman.json')).json();

/** Runs a collection against a sandbox, and returns what failed and how much was tried. */
const run = (collection, { username, password }) => new Promise((done, failed) => {
  const envVar = [{ key: 'username', value: username }, { key: 'password', value: password }];
  newman.run({ collection, envVar }, (err, summary) => {
    if (err) return failed(err);
    const { stats, failures } = summary.run;
    const faults = failures.map(({ source, error }) => `${source?.name}: ${error.test ?? ''} ${error.message}`);
    done({ faults, requests: stats.requests.total, assertions: stats.assertions.total });
  });
});

test('newman: the collection is green', async (t) => {
  const { faults, requests, assertions } = await run(await collectionOf(service), service);
  t.diagnostic(`${requests} requests`);
  assert.deepEqual(faults, []);
  assert.ok(requests > 90 && assertions === requests, `${assertions} tests of ${requests} requests`);
});

/** The contract tests that portman makes of the document, by operation as in "GET /a/:b". */
function contracts() {
  const config = join(dir, 'config.json'), out = join(dir, 'collection.json');
  const enabled = { enabled: true };
  const contractTests = [{ openApiOperation: '*::/*', statusSuccess: enabled, contentType: enabled, jsonBody: enabled, schemaValidation: enabled }];
  writeFileSync(config, JSON.stringify({ version: 1.0, tests: { contractTests } }));

  const portman = resolve('node_modules/@apideck/portman/bin/portman');
  execFileSync(process.execPath, [portman, '-l', resolve('../../internal/api/openapi.yaml'), '-c', config, '-o', out, '-b', 'http://127.0.0.1:1'],
    { cwd: dir, stdio: ['ignore', 'ignore', 'inherit'] });

  const byOperation = {};
  const walk = (item) => {
    if (item.item) return item.item.forEach(walk);
    const script = item.event?.find(({ listen }) => listen === 'test')?.script.exec ?? [];
    byOperation[`${item.request.method} /${item.request.url.path.join('/')}`] = script;
  };
  JSON.parse(readFileSync(out, 'utf8')).item.forEach(walk);
  return byOperation;
}

test('portman: every answer keeps the contract', async () => {
  const other = await sandbox();
  try {
    const collection = await collectionOf(other), script = contracts();
    let held = 0;
    for (const call of collection.item.flatMap(({ item }) => item)) {
      const own = call.event[0].script.exec;
      const name = `${call.request.method} /${call.request.url.path.join('/')}`;
      assert.ok(script[name], `portman has no test of ${name}`);
      if (own[0].includes('oneOf([200])')) { // what a fresh sandbox refuses is no success
        own.push(...script[name]);
        held++;
      }
    }

    const { faults, assertions } = await run(collection, other);
    assert.deepEqual(faults, []);
    assert.ok(held > 80 && assertions > 3 * held, `${assertions} tests of ${held} requests`);

    // An answer that the document has otherwise is found out.
    const planted = collection.item.flatMap(({ item }) => item).find(({ request }) => request.url.path.join('/') === 'healthz');
    planted.event[0].script.exec = script['GET /sandbox/clock'];
    const found = await run({ ...collection, item: [{ name: 'planted', item: [planted] }] }, other);
    assert.ok(found.faults.length > 0, 'a wrong answer passed');
  } finally {
    await other.stop();
  }
});
