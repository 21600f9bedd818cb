// The official clients' own OAuth, from the 401 to a tool's answer, with a real provider whose access tokens are JWTs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { UnauthorizedError as V1Unauthorized } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as V1Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as V1Transport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startSvc } from '../browser/lib/svc.mjs';
import { CALLBACK, signIn, startIssuer, userOfToken } from './issuer.mjs';
import { listedActions, runJob } from './job.mjs';

const us = { name: 'svc-tests', version: '1.0.0' };
let issuer;
let svc;
/** A user who has called the service. */
let colleague;

before(async () => {
  issuer = await startIssuer();
  svc = await startSvc({ tables: issuer.tables });
});
after(async () => {
  await svc?.stop();
  issuer?.stop();
});

/** Remembers what a client is to remember, and where it would have sent its user. */
class MemoryClientStore {
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

const clients = {
  'SDK v1': { client: () => new V1Client(us), transport: V1Transport, unauthorized: V1Unauthorized },
  'SDK v2': { client: () => new v2.Client(us), transport: v2.StreamableHTTPClientTransport, unauthorized: v2.UnauthorizedError },
  'SDK v2 of 2026-07-28': {
    client: () => new v2.Client(us, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    transport: v2.StreamableHTTPClientTransport,
    unauthorized: v2.UnauthorizedError,
  },
};

/** Has a client find out by itself how its user signs in; answers it connected again, and the token that it got. */
async function connectSignedIn(kind, name) {
  const authProvider = new MemoryClientStore();
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
    colleague ??= (await userOfToken(svc, (await connectSignedIn(kind, 'colleague')).token)).user_id;
    const { client, token } = await connectSignedIn(kind, `person-${number}`);
    const { kind: is, memberships } = await userOfToken(svc, token);
    assert.deepEqual({ is, memberships }, { is: 'user', memberships: [] });
    // A user does what a key may not, too.
    const { tools } = await client.listTools();
    const called = await runJob((request) => client.callTool(request), { colleague });
    assert.deepEqual(called, listedActions(tools));
    await client.close();
  });
}
