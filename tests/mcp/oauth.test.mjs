// The official clients' own OAuth, from the 401 to a tool's answer, with a real provider whose access tokens are JWTs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { UnauthorizedError as V1Unauthorized } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as V1Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as V1Transport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import Provider from 'oidc-provider';
import { startSvc } from '../browser/lib/svc.mjs';
import { listed, work } from './job.mjs';

const AUDIENCE = 'https://svc.example';
const CALLBACK = 'http://localhost:9/callback';
const us = { name: 'svc-tests', version: '1.0.0' };
let issuer;
let server;
let svc;
/** A user who has called the service. */
let colleague;

before(async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${server.address().port}`;
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
  svc = await startSvc({ tables: ['[oauth]', `issuer = "${issuer}"`, `audience = "${AUDIENCE}"`, 'scopes = ["svc"]'] });
});
after(async () => {
  await svc?.stop();
  server?.closeAllConnections();
  server?.close();
});

/** Remembers what a client is to remember, and where it would have sent its user. */
class Memory {
  redirectUrl = CALLBACK;
  clientMetadata = {
    client_name: 'svc-tests',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  #client;
  #tokens;
  #verifier;
  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client) {
    this.#client = client;
  }
  tokens() {
    return this.#tokens;
  }
  saveTokens(tokens) {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url) {
    this.url = url;
  }
  saveCodeVerifier(verifier) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

/** Signs in as a person in a browser would: follows redirects and sends the forms; answers what comes back to the client. */
async function signIn(url, name) {
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

const clients = {
  'SDK v1': { client: () => new V1Client(us), transport: V1Transport, unauthorized: V1Unauthorized },
  'SDK v2': { client: () => new v2.Client(us), transport: v2.StreamableHTTPClientTransport, unauthorized: v2.UnauthorizedError },
  'SDK v2 of 2026-07-28': {
    client: () => new v2.Client(us, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    transport: v2.StreamableHTTPClientTransport,
    unauthorized: v2.UnauthorizedError,
  },
};

/** Who calls with a token. */
async function who(token) {
  const answer = await fetch(new URL('/api/v1/me', svc.url), { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200);
  return answer.json();
}

/** Has a client find out by itself how its user signs in; answers it connected again, and the token that it got. */
async function arrive(kind, name) {
  const authProvider = new Memory();
  const connect = async () => {
    const client = kind.client();
    const transport = new kind.transport(new URL('/mcp', svc.url), { authProvider });
    await client.connect(transport);
    return { client, transport };
  };
  const { client, transport } = await connect();
  // What needs nobody needs no sign-in.
  assert.equal((await client.listTools()).tools.length, 6);
  const list = { name: 'manage_workspace', arguments: { action: 'list' } };
  await assert.rejects(() => client.callTool(list), kind.unauthorized);
  const back = await signIn(authProvider.url, name);
  assert.ok(back.get('code'), back.toString());
  await transport.finishAuth(kind.transport === V1Transport ? back.get('code') : back);
  await client.close();
  return { client: (await connect()).client, token: authProvider.tokens().access_token };
}

for (const [number, [name, kind]] of Object.entries(clients).entries()) {
  test(`${name} walks from the 401 through the whole job`, async () => {
    colleague ??= (await who((await arrive(kind, 'colleague')).token)).user_id;
    const { client, token } = await arrive(kind, `person-${number}`);
    const { kind: is, memberships } = await who(token);
    assert.deepEqual({ is, memberships }, { is: 'user', memberships: [] });
    // A user does what a key may not, too.
    const { tools } = await client.listTools();
    const called = await work((request) => client.callTool(request), { colleague });
    assert.deepEqual(called, listed(tools));
    await client.close();
  });
}
