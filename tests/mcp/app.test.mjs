// The official clients at an app's own tools, as visitors' agents use them: without a credential, at the page's address.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { startSvc } from '../browser/lib/svc.mjs';
import { clients } from './clients.mjs';
import { ACTIONS, startLibraryApp, limits } from './library.mjs';

let svc;
let endpoint;
before(async () => {
  svc = await startSvc({ limits });
  endpoint = new URL(await startLibraryApp(svc));
});
after(() => svc?.stop());

async function callEveryTool(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

for (const [name, { client: make, transport: Transport, version }] of Object.entries(clients)) {
  test(`${name} uses the tools of an app`, async () => {
    const client = make();
    await client.connect(new Transport(endpoint));
    if (version) assert.equal(client.getNegotiatedProtocolVersion(), version);
    assert.match(client.getInstructions(), /"My library"/);
    assert.match(client.getInstructions(), /words of the page's owner/);
    const tools = await callEveryTool(client);
    const named = new Map(tools.map((tool) => [tool.name, tool]));
    assert.equal(named.size, ACTIONS);
    assert.equal(named.get('add_book').description, 'Adds a book.');
    assert.equal(named.get('add_book').annotations.readOnlyHint, false);
    assert.equal(named.get('list_books').annotations.readOnlyHint, true);
    const book = { title: `A book for ${name}`, by: null };
    const added = await client.callTool({ name: 'add_book', arguments: book });
    assert.equal(added.structuredContent.rows_affected, 1);
    const listed = await client.callTool({ name: 'list_books', arguments: {} });
    assert.ok(listed.structuredContent.rows.some(({ title }) => title === book.title));
    assert.deepEqual(JSON.parse(listed.content[0].text), listed.structuredContent);
    const again = await client.callTool({ name: 'add_book', arguments: book });
    assert.equal(again.isError, true);
    assert.equal(again.structuredContent.code, 'constraint_violation');
    await assert.rejects(() => client.callTool({ name: 'my_books', arguments: {} }));
    await client.close();
  });
}

test('the Python SDK uses the tools of an app', { skip: !process.env.MCP_PYTHON && 'MCP_PYTHON names no Python with `mcp`' }, async () => {
  const script = fileURLToPath(new URL('app.py', import.meta.url));
  for (const mode of ['legacy', 'auto', '2026-07-28']) {
    const { stdout } = await promisify(execFile)(process.env.MCP_PYTHON, [script, endpoint.href, mode]);
    assert.match(stdout, /^done$/m);
  }
});
