// OpenADR through prism, by the published specification: it refuses requests and answers that are off it before
// flexd's server (VTN), and stands in as a utility's server for flexd as its client (VEN).
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { after, before, test } from 'node:test';
import { sandbox } from '../../clients/typescript/test/service.mjs';

const yaml = createRequire(import.meta.url)('js-yaml');
const root = '/openadr3/3.1.0';
const published = readFileSync('../../internal/openadr/testdata/openadr-3.1.0.yaml', 'utf8');
let service, dir;

before(async () => {
  service = await sandbox();
  dir = mkdtempSync(join(tmpdir(), 'openadr-'));
  flexd('org', 'set', 'Acme', 'openadr=true');
});

after(async () => {
  await service?.stop();
  if (dir) rmSync(dir, { recursive: true, force: true });
});

/** Runs a command of flexd beside the sandbox. */
function flexd(...args) {
  const env = { ...service.options.env, FLEXD_ENVIRONMENT: 'sandbox', FLEXD_ALLOW_PRIVATE_ENDPOINTS: 'true' };
  return execFileSync(process.env.FLEXD, args, { ...service.options, env, encoding: 'utf8' });
}

/** A port of the loopback that is free now. */
const freePort = () => new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});

/**
 * The specification, changed. Its schemas of a VEN and of a resource want two objectTypes at once, which no document
 * can have: the one of the request is left out.
 */
function specification(name, change = () => {}) {
  const document = yaml.load(published);
  const { schemas } = document.components;
  for (const [made, asked] of [['ven', 'BlVenRequest'], ['resource', 'BlResourceRequest']]) {
    const { objectType, ...properties } = schemas[asked].properties;
    schemas[made].allOf[1] = { ...schemas[asked], properties, required: schemas[asked].required.filter((field) => field !== 'objectType') };
  }
  change(document);
  const file = join(dir, name + '.yaml');
  writeFileSync(file, yaml.dump(document));
  return file;
}

/** Starts prism on a free port. */
async function prism(...args) {
  const port = await freePort();
  const child = spawn(process.execPath, ['node_modules/@stoplight/prism-cli/dist/index.js', ...args, '-h', '127.0.0.1', '-p', String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = [];
  await new Promise((ready, failed) => {
    child.once('exit', (code) => failed(new Error(`prism ended with ${code}`)));
    createInterface(child.stdout).on('line', (line) => {
      lines.push(line);
      if (line.includes('Prism is listening')) ready();
    });
  });
  return { address: `http://127.0.0.1:${port}`, lines, stop: () => child.kill() };
}

/** Adds a client and returns a function that makes its requests at an address. */
async function client(name, role, address) {
  const secret = flexd('openadr', 'client', 'add', 'Acme', name, '--role', role, '--json');
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_id: name, client_secret: JSON.parse(secret).password });
  const login = await fetch(service.address + root + '/auth/token', { method: 'POST', body: form });
  const token = (await login.json()).access_token;
  return async (method, path, body, want = 200) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(address + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    assert.equal(answer.status, want, `${method} ${path}: ${text}`);
    return JSON.parse(text);
  };
}

/** A night of both kinds of client: every kind of object is made, found, changed and deleted. */
async function story(address, suffix) {
  const bl = await client('bl' + suffix, 'BL', address), ven = await client('ven' + suffix, 'VEN', address);
  const program = await bl('POST', '/programs', { programName: 'peak' + suffix }, 201);
  const event = await bl('POST', '/events', { programID: program.id, priority: 1, eventName: 'cold', intervalPeriod: { start: '2026-01-15T18:00:00Z', duration: 'PT1H' },
    reportDescriptors: [{ payloadType: 'USAGE' }], intervals: [{ id: 0, payloads: [{ type: 'IMPORT_CAPACITY_LIMIT', values: [9.5] }] }] }, 201);
  const me = await ven('POST', '/vens', { objectType: 'VEN_VEN_REQUEST', venName: 'home' + suffix }, 201);
  const resource = await ven('POST', '/resources', { objectType: 'VEN_RESOURCE_REQUEST', resourceName: 'charger', venID: me.id }, 201);
  const subscription = await ven('POST', '/subscriptions', { clientName: 'home', programID: program.id,
    objectOperations: [{ objects: ['EVENT'], operations: ['CREATE'], callbackUrl: 'http://127.0.0.1:9/hook', bearerToken: 'secret' }] }, 201);
  const report = await ven('POST', '/reports', { eventID: event.id, clientName: 'home', resources: [{ resourceName: 'charger', intervals: [{ id: 0, payloads: [{ type: 'USAGE', values: [1.5] }] }] }] }, 201);

  const all = [['programs', program, bl], ['events', event, bl], ['vens', me, ven], ['resources', resource, ven], ['subscriptions', subscription, ven], ['reports', report, ven]];
  for (const [path, object, who] of all) {
    assert.ok((await who('GET', '/' + path)).some(({ id }) => id === object.id), path);
    assert.equal((await who('GET', `/${path}/${object.id}`)).id, object.id);
    await who('GET', `/${path}/00000000-0000-4000-8000-000000000001`, undefined, 404);
  }
  await bl('PUT', '/events/' + event.id, { programID: program.id, intervals: [] });
  await bl('POST', '/events', { programID: program.id, intervals: [], priority: -1 }, 422); // refused by prism
  for (const [path, object, who] of [all[5], all[4], all[3], all[2], all[1], all[0]]) await who('DELETE', `/${path}/${object.id}`);
}

test('requests to the server and its answers are as the specification says', async () => {
  const before = await prism('proxy', '--errors', specification('vtn'), service.address + root);
  try {
    await story(before.address, '-1');
  } finally {
    before.stop();
  }
});

test('prism finds an answer that lacks what the specification wants', async () => {
  const wrong = specification('wrong', ({ components }) => { components.schemas.program.allOf.push({ type: 'object', required: ['nowhere'] }); });
  const before = await prism('proxy', '--errors', wrong, service.address + root);
  try {
    await assert.rejects(story(before.address, '-2'), /nowhere/);
  } finally {
    before.stop();
  }
});

test('a utility\'s server that prism mocks takes every request of the client', async () => {
  const start = new Date(Date.now() + 600_000).toISOString().slice(0, 19) + 'Z';
  const utility = specification('utility', ({ paths }) => {
    paths['/events'].get.responses['200'].content['application/json'].example = [{ id: 'event-1', objectType: 'EVENT', createdDateTime: start, modificationDateTime: start, programID: 'program-1',
      intervalPeriod: { start, duration: 'PT30M' }, reportDescriptors: [{ payloadType: 'USAGE_FORECAST', startInterval: -1 }],
      intervals: [{ id: 0, payloads: [{ type: 'EXPORT_CAPACITY_LIMIT', values: [5] }] }] }];
  });
  const mock = await prism('mock', utility);
  try {
    const added = JSON.parse(flexd('openadr', 'upstream', 'add', 'the utility', '--org', 'Acme', '--url', mock.address, '--client-id', 'acme', '--program', 'program-1', '--poll', '10s', '--secret', 'a-secret-of-the-utility',
      '--callback', service.address, '--json'));
    flexd('openadr', 'bind', added.program_id, '--org', 'Acme'); // a limit of export is refused as an instruction, which is reported

    const wanted = ['POST /auth/token', 'GET /events', 'GET /vens', 'GET /resources', 'POST /subscriptions', 'POST /reports'];
    const missing = () => wanted.filter((one) => !mock.lines.some((line) => line.replaceAll(/\u001b\[\d+m/g, '').replaceAll(/\s+/g, ' ').toUpperCase().includes(one.toUpperCase())));
    for (let n = 0; missing().length > 0 && n < 600; n++) await pause(1000); // as long as it takes
    assert.deepEqual(missing(), [], mock.lines.join('\n'));
    const [row] = JSON.parse(flexd('openadr', 'upstream', 'list', '--org', 'Acme', '--json'));
    assert.equal(row.error, undefined, mock.lines.join('\n'));
    assert.equal(row.calls, true);
  } finally {
    mock.stop();
  }
});
