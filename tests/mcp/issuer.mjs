// A real provider of access tokens (a certified implementation), with whoever signs in there.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const AUDIENCE = 'https://svc.example';
/** Where clients of these tests would be sent back to. */
export const CALLBACK = 'http://localhost:9/callback';

/** Starts a provider whose access tokens are JWTs; `tables` is what a server has in its settings that takes them. */
export async function startIssuer() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    scopes: ['openid', 'offline_access', 'svc'],
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          audience: AUDIENCE,
          scope: 'svc',
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  });
  server.on('request', provider.callback());
  return {
    url: issuer,
    tables: ['[oauth]', `issuer = "${issuer}"`, `audience = "${AUDIENCE}"`, 'scopes = ["svc"]'],
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Signs in as a person in a browser would: follows redirects and sends the forms; answers what comes back to the client. */
export async function signIn(url, name) {
  const cookies = new Map();
  let next = { url };
  for (let step = 0; step < 20; step++) {
    const headers = { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join('; ') };
    const answer = await fetch(next.url, { redirect: 'manual', headers, method: next.form ? 'POST' : 'GET', body: next.form });
    for (const cookie of answer.headers.getSetCookie()) {
      const [key, value] = cookie.split(';')[0].split(/=(.*)/s);
      cookies.set(key, value);
    }
    const location = answer.headers.get('location');
    if (location) {
      const to = new URL(location, next.url);
      if (to.href.startsWith(CALLBACK)) return to.searchParams;
      next = { url: to };
      continue;
    }
    const page = await answer.text();
    const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1];
    assert.ok(action, page);
    const prompt = /name="prompt" value="([^"]+)"/.exec(page)[1];
    const form = new URLSearchParams({ prompt, login: name, password: 'any' });
    next = { url: new URL(action, next.url), form };
  }
  throw new Error('no end of redirects');
}

/** The access token of a person for a server, as a client that knows OAuth gets it. */
export async function tokenOf(issuer, resource, name) {
  const post = async (path, body, headers) => {
    const answer = await fetch(`${issuer.url}${path}`, { method: 'POST', body, headers });
    const document = await answer.json();
    assert.ok(answer.ok, JSON.stringify(document));
    return document;
  };
  const registration = {
    client_name: 'svc-tests',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  const json = { 'content-type': 'application/json' };
  const { client_id } = await post('/reg', JSON.stringify(registration), json);
  const verifier = randomBytes(32).toString('base64url');
  const ask = new URL('/auth', issuer.url);
  ask.search = new URLSearchParams({
    client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'svc',
    resource,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const code = (await signIn(ask, name)).get('code');
  const redirect_uri = CALLBACK;
  const form = { grant_type: 'authorization_code', client_id, code, redirect_uri, code_verifier: verifier, resource };
  const { access_token } = await post('/token', new URLSearchParams(form));
  return access_token;
}

/** Who calls with a token. */
export async function userOfToken(svc, token) {
  const answer = await fetch(new URL('/api/v1/me', svc.url), { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200);
  return answer.json();
}
