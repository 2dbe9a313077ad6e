// The Model Context Protocol's conformance suite, against flexd mcp --listen.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { sandbox } from '../../clients/typescript/test/service.mjs';

let service, agent, ended, door;
before(async () => {
  service = await sandbox();
  const login = new URLSearchParams({ grant_type: 'password', username: service.username, password: service.password });
  const answer = await fetch(service.address + '/auth/token-form', { method: 'POST', body: login });
  const token = (await answer.json()).access_token;

  const args = ['mcp', '--environment', 'sandbox', '--write', '--listen', '127.0.0.1:0'];
  agent = spawn(process.env.FLEXD, args, { ...service.options, stdio: ['ignore', 'pipe', 'inherit'] });
  ended = new Promise((done) => agent.once('exit', done));
  const address = await new Promise((found, failed) => {
    agent.once('exit', (code) => failed(new Error(`flexd mcp ended with ${code}`)));
    createInterface(agent.stdout).once('line', (line) => found(new URL(line.replace('listening on ', ''))));
  });

  // The suite knows no tokens: what stands between adds one, and changes nothing else.
  door = http.createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: 'Bearer ' + token };
    const to = { host: address.hostname, port: address.port, path: address.pathname, method: asked.method, headers };
    const passed = http.request(to, (got) => { answer.writeHead(got.statusCode, got.headers); got.pipe(answer); });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  await new Promise((listening) => door.listen(0, '127.0.0.1', listening));
});

after(async () => {
  door?.close();
  agent?.kill('SIGTERM');
  await ended;
  await service?.stop();
});

const passing = [
  'server-initialize', 'ping', 'logging-set-level', 'tools-list',
  'resources-list', 'prompts-list', 'dns-rebinding-protection',
];

test('the conformance suite, but for what its own test server alone has', async () => {
  const url = `http://localhost:${door.address().port}/mcp`;
  const args = ['node_modules/@modelcontextprotocol/conformance/dist/index.js', 'server', '--url', url, '--expected-failures', 'mcp-baseline.yaml'];
  const [code, said] = await new Promise((done) => execFile(process.execPath, args, (err, out, wrong) => done([err ? err.code : 0, out + wrong])));
  for (const scenario of passing) assert.match(said, new RegExp(`✓ ${scenario}: \\d+ passed, 0 failed`));
  assert.equal(code, 0, said);
});
