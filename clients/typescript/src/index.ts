// The client of flexd: one function for each operation, typed, and with every answer checked
// against its schema.
import { loginForAccessTokenFormAuthTokenFormPost } from './generated/index.js';
import { createClient, type Client } from './generated/client/index.js';

export * from './generated/index.js';

/** How long a token is used, in milliseconds; it lives an hour. */
const tokenLife = 50 * 60 * 1000;

/**
 * Returns a client of the service at `baseUrl` that logs in as an organisation, and again before
 * its token ends. Give it to any operation: `getSitesEntitiesSiteGet({ client: flexd, throwOnError: true })`.
 * It throws what the service answers where it refuses the name or the password.
 */
export function connect(baseUrl: string, username: string, password: string): Client {
  const open = createClient({ baseUrl, throwOnError: true });
  let token: Promise<string> | undefined;
  let newest = '';
  let renewAt = 0;

  const login = async (): Promise<string> => {
    const { data } = await loginForAccessTokenFormAuthTokenFormPost({
      client: open, body: { username, password, grant_type: 'password' }, throwOnError: true,
    });
    newest = data.access_token;
    return newest;
  };

  const client = createClient({
    baseUrl,
    auth: () => {
      if (!token || Date.now() >= renewAt) {
        renewAt = Date.now() + tokenLife;
        token = login();
        token.catch(() => { token = undefined; });
      }
      return token;
    },
  });

  // A token may end before its time, as when the password is changed: the next call logs in. The late answer to a call
  // with an older token says nothing of the newest.
  client.interceptors.response.use((response, request) => {
    const used = request.headers.get('Authorization');
    if (response.status === 401 && used === `Bearer ${newest}`) token = undefined;
    return response;
  });

  return client;
}
