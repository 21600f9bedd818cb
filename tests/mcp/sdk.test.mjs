// The official clients, as they come: each lists the tools and does one job that calls every action.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { startSvc } from '../browser/lib/svc.mjs';
import { clients } from './clients.mjs';
import { listedActions, runJob } from './job.mjs';

let svc;
let endpoint;
before(async () => {
  svc = await startSvc();
  endpoint = new URL('/mcp', svc.url);
  // The first start compiles the guests.
  while (!(await fetch(new URL('/readyz', svc.url))).ok) await new Promise((done) => setTimeout(done, 250));
});
after(() => svc?.stop());

async function connect({ client: make, transport: Transport }, credential) {
  const client = make();
  const headers = credential ? { authorization: `Bearer ${credential}` } : {};
  await client.connect(new Transport(endpoint, { requestInit: { headers } }));
  return client;
}

for (const [number, [name, kind]] of Object.entries(clients).entries()) {
  test(`${name} does the whole job`, async () => {
    const { credential } = await svc.operate('namespace', 'create', `owner-${number}`);
    const client = await connect(kind, credential);
    if (kind.version) assert.equal(client.getNegotiatedProtocolVersion(), kind.version);
    const { tools } = await client.listTools();
    assert.match(client.getInstructions(), /create_revision/);
    const called = await runJob((request) => client.callTool(request));
    assert.deepEqual(called, listedActions(tools));
    await client.close();
  });

  test(`${name} without a credential publishes a share, and learns how to get one`, async () => {
    const client = await connect(kind);
    const share = await client.callTool({ name: 'deploy_asset', arguments: { content: 'x' } });
    assert.equal((await fetch(share.structuredContent.url)).status, 200);
    const refused = await client.callTool({ name: 'manage_project', arguments: { action: 'list' } });
    assert.equal(refused.isError, true);
    assert.equal(refused.structuredContent.code, 'unauthorized');
    await client.close();
  });

  test(`${name} with a wrong credential is refused`, async () => {
    await assert.rejects(() => connect(kind, 'nonsense'));
  });
}

test('the Python SDK does the whole job', { skip: !process.env.MCP_PYTHON && 'MCP_PYTHON names no Python with `mcp`' }, async () => {
  const script = fileURLToPath(new URL('sdk.py', import.meta.url));
  for (const mode of ['legacy', 'auto', '2026-07-28']) {
    const { credential } = await svc.operate('namespace', 'create', `python-${mode}`);
    const run = promisify(execFile)(process.env.MCP_PYTHON, [script, endpoint.href, mode], {
      env: { ...process.env, SVC_CREDENTIAL: credential },
    });
    const { stdout } = await run;
    assert.match(stdout, /^done: \d+ calls$/m);
  }
});
