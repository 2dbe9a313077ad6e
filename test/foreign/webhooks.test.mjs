// Libraries of the Standard Webhooks verify what flexd sends, and refuse it changed.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { Webhook as Standard } from 'standardwebhooks';
import { Webhook as Svix } from 'svix';
import { sandbox } from '../../clients/typescript/test/service.mjs';

let service;
before(async () => { service = await sandbox(); });
after(() => service?.stop());

async function token() {
  const form = new URLSearchParams({ username: service.username, password: service.password });
  const answer = await fetch(service.address + '/auth/token-form', { method: 'POST', body: form });
  return (await answer.json()).access_token;
}

/** Receives one push on a free port, and answers it. */
async function receiver() {
  let server;
  const push = new Promise((got) => {
    server = createServer(async (request, response) => {
      let body = '';
      for await (const part of request) body += part;
      response.writeHead(204).end();
      got({ headers: request.headers, body });
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { push, url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

test('a push is verified', async () => {
  const mine = await receiver();
  const headers = { Authorization: `Bearer ${await token()}`, 'Content-Type': 'application/json' };
  const send = (method, path, body) => fetch(service.address + path, { method, headers, body });

  const endpoint = await (await send('PUT', '/endpoints/schedule', JSON.stringify({ url: mine.url }))).json();
  const answer = await send('POST', '/endpoints/schedule/test');
  assert.ok(answer.ok, `the test message: ${answer.status}`);

  const { headers: signed, body } = await mine.push;
  mine.close();
  for (const library of [Standard, Svix]) {
    const verifier = new library(endpoint.secret);
    assert.ok(verifier.verify(body, signed));
    assert.throws(() => verifier.verify(body + ' ', signed));
  }
});
