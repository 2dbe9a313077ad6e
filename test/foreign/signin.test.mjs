// An operator signs in to the console at an identity provider that is not of this project.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import Provider from 'oidc-provider';

const groups = { grace: ['flexd-duty'], mallory: ['chess'] };
let issuer, provider, flexd, address, dir;

// listen has a server listen on a free port of the loopback, and returns its address.
const listen = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));

before(async () => {
  const free = createServer();
  address = await listen(free);
  await new Promise((done) => free.close(done));

  provider = createServer((request, response) => handle(request, response));
  issuer = await listen(provider);
  const oidc = new Provider(issuer, {
    clients: [{
      client_id: 'flexd', client_secret: 's3cret', redirect_uris: [address + '/console/login/sso/callback'],
      post_logout_redirect_uris: [address + '/console/login'],
    }],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }) }),
  });
  const handle = oidc.callback();

  dir = mkdtempSync(join(tmpdir(), 'flexd-'));
  const env = { ...process.env, FLEXD_DATABASE: 'sqlite:' + join(dir, 'flexd.db'), FLEXD_SSO_CLIENT_SECRET: 's3cret' };
  execFileSync(process.env.FLEXD, ['org', 'add', 'Acme', '--username', 'acme'], { env, cwd: dir });
  flexd = spawn(process.env.FLEXD, ['serve', '--log-level', 'warn', '--listen', address.slice('http://'.length), '--base-url', address,
    '--sso-issuer', issuer, '--sso-client-id', 'flexd', '--sso-role', 'flexd-duty=operator', '--operators-by-sso-alone'],
  { env, cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((up, failed) => {
    flexd.once('exit', (code) => failed(new Error(`flexd ended with ${code}`)));
    createInterface(flexd.stdout).on('line', (line) => line.startsWith('listening on') && up());
  });
});

after(async () => {
  const ended = new Promise((done) => flexd.once('exit', done));
  flexd.kill('SIGTERM');
  await ended;
  provider.closeAllConnections();
  provider.close();
  rmSync(dir, { recursive: true, force: true });
});

// browser follows redirects and keeps cookies, each site's apart.
function browser() {
  const jars = {};
  return async function go(url, form) {
    for (;;) {
      const { origin } = new URL(url);
      const jar = (jars[origin] ??= {});
      const answer = await fetch(url, {
        redirect: 'manual', method: form ? 'POST' : 'GET', body: form && new URLSearchParams(form),
        headers: { Cookie: Object.entries(jar).map(([name, value]) => `${name}=${value}`).join('; ') },
      });
      for (const set of answer.headers.getSetCookie()) {
        const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
        jar[name] = value;
      }
      if (answer.status < 300 || answer.status >= 400) return { url, status: answer.status, text: await answer.text() };
      url = new URL(answer.headers.get('location'), url).href;
      form = undefined;
    }
  };
}

// signIn goes the whole way as a person does.
async function signIn(go, login, query = '') {
  let page = await go(address + '/console/login/sso' + query);
  for (const form of [{ prompt: 'login', login, password: 'any' }, { prompt: 'consent' }]) {
    if (page.url.startsWith(issuer)) {
      page = await go(new URL(page.text.match(/action="([^"]+)"/)[1], page.url).href, form);
    }
  }
  return page;
}

test('oidc-provider: a group opens the console, in the role that it gives', async () => {
  const go = browser();
  const back = await signIn(go, 'grace', '?next=/console/safety');
  assert.equal(back.status, 200);
  assert.match(back.text, /content="0;url=\/console\/safety"/);

  const account = await go(address + '/console/account');
  assert.match(account.text, /Your role is operator/);

  const again = await signIn(go, 'grace', '?again=1');
  assert.equal(again.status, 200);

  const out = await go(address + '/console/logout', {});
  assert.equal(out.status, 200);
  const there = out.text.match(/href="(http:[^"]+)"/)[1].replaceAll('&amp;', '&');
  assert.equal((await go(there)).status, 200);
});

test('oidc-provider: who is in no group with a role stays out', async () => {
  const go = browser();
  const back = await signIn(go, 'mallory');
  assert.equal(back.status, 403);
  assert.match((await go(address + '/console/fleet')).url, /\/console\/login/);
});
