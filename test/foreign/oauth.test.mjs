// OAuth 2.0 clients that are not of this project get a token and use it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ClientCredentials, ResourceOwnerPassword } from 'simple-oauth2';
import * as openid from 'openid-client';
import { sandbox } from '../../clients/typescript/test/service.mjs';

let service;
before(async () => { service = await sandbox(); });
after(() => service?.stop());

async function use(token) {
  const answer = await fetch(service.address + '/auth/users/me/', { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).username, service.username);
}

for (const authorizationMethod of ['header', 'body']) {
  test(`simple-oauth2, client in the ${authorizationMethod}`, async () => {
    const client = new ResourceOwnerPassword({
      client: { id: 'any', secret: 'any' },
      auth: { tokenHost: service.address, tokenPath: '/auth/token-form' },
      options: { authorizationMethod },
    });
    const { token } = await client.getToken({ username: service.username, password: service.password });
    await use(token.access_token);

    const refused = client.getToken({ username: service.username, password: 'wrong' });
    await assert.rejects(refused, (err) => err.data.payload.error === 'invalid_grant');
  });
}

for (const authorizationMethod of ['header', 'body']) {
  test(`simple-oauth2, client credentials in the ${authorizationMethod}`, async () => {
    const auth = { tokenHost: service.address, tokenPath: '/auth/token-form' };
    const options = { authorizationMethod };
    const client = new ClientCredentials({ client: { id: service.username, secret: service.password }, auth, options });
    const { token } = await client.getToken({ scope: 'entity_read' });
    await use(token.access_token);

    const wrong = new ClientCredentials({ client: { id: service.username, secret: 'wrong' }, auth, options });
    await assert.rejects(wrong.getToken({}), (err) => err.data.payload.error === 'invalid_client');
  });
}

for (const [name, authentication] of [['Basic', openid.ClientSecretBasic], ['Post', openid.ClientSecretPost]]) {
  test(`openid-client, client credentials by ${name}`, async () => {
    const server = { issuer: service.address, token_endpoint: service.address + '/auth/token-form' };
    const config = new openid.Configuration(server, service.username, {}, authentication(service.password));
    openid.allowInsecureRequests(config);
    const token = await openid.clientCredentialsGrant(config, { scope: 'entity_read rewards' });
    await use(token.access_token);
  });
}

test('openid-client', async () => {
  const server = { issuer: service.address, token_endpoint: service.address + '/auth/token-form' };
  const config = new openid.Configuration(server, 'any', 'any');
  openid.allowInsecureRequests(config);
  const token = await openid.genericGrantRequest(config, 'password', { username: service.username, password: service.password });
  await use(token.access_token);
});
