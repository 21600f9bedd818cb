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

const AUDIENCE = 'https://svc.example';
const CALLBACK = 'http://localhost:9/callback';
const who = { name: 'svc-tests', version: '1.0.0' };
let issuer;
let server;
let svc;

before(async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
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
  'SDK v1': { client: () => new V1Client(who), transport: V1Transport, unauthorized: V1Unauthorized },
  'SDK v2': { client: () => new v2.Client(who), transport: v2.StreamableHTTPClientTransport, unauthorized: v2.UnauthorizedError },
  'SDK v2 of 2026-07-28': {
    client: () => new v2.Client(who, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    transport: v2.StreamableHTTPClientTransport,
    unauthorized: v2.UnauthorizedError,
  },
};

for (const [number, [name, kind]] of Object.entries(clients).entries()) {
  test(`${name} walks from the 401 to a tool's answer`, async () => {
    const authProvider = new Memory();
    const endpoint = new URL('/mcp', svc.url);
    const connect = async () => {
      const client = kind.client();
      const transport = new kind.transport(endpoint, { authProvider });
      await client.connect(transport);
      return { client, transport };
    };
    const list = { name: 'manage_workspace', arguments: { action: 'list' } };
    const { client, transport } = await connect();
    // What needs nobody needs no sign-in.
    assert.equal((await client.listTools()).tools.length, 6);
    await assert.rejects(() => client.callTool(list), kind.unauthorized);
    const back = await signIn(authProvider.url, `person-${number}`);
    assert.ok(back.get('code'), back.toString());
    await transport.finishAuth(kind.transport === V1Transport ? back.get('code') : back);
    await client.close();
    const signed = await connect();
    const before = await signed.client.callTool(list);
    assert.deepEqual(before.structuredContent, { workspaces: [] });
    const create = { action: 'create', display_name: `House ${number}` };
    const made = await signed.client.callTool({ name: 'manage_workspace', arguments: create });
    assert.equal(made.structuredContent.role, 'owner');
    const project = { action: 'create', name: 'Notes' };
    const answer = await signed.client.callTool({ name: 'manage_project', arguments: project });
    assert.equal(answer.structuredContent.workspace.slug, `house-${number}`);
    // The same token serves REST.
    const { access_token: token } = authProvider.tokens();
    const me = await fetch(new URL('/api/v1/me', svc.url), { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await me.json()).memberships[0].workspace.slug, `house-${number}`);
    await signed.client.close();
  });
}
