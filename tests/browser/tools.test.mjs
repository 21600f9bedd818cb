// A page that an agent made, over the tools alone, works for its visitors: changed by a draft, and put back.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const content = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Notes</title><link rel="icon" href="data:,"></head>
<body><main><h1>Notes</h1><ul></ul></main>
<script>
  (async () => {
    await svc.db.op('add_note', { text: 'hello' });
    const { rows } = await svc.db.op('list_notes');
    document.querySelector('ul').innerHTML = rows.map(({ id }) => '<li>' + id).join('');
  })();
</script></body></html>`;

let svc;
let browser;
let credential;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  ({ credential } = await svc.operate('namespace', 'create', 'acme'));
});
after(() => Promise.all([browser?.close(), svc?.stop()]));

/** Calls a tool, as a client that knows nothing of the protocol but its wire. */
async function callTool(name, args) {
  const answer = await fetch(`${svc.url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result } = await answer.json();
  assert.equal(result.isError, false, JSON.stringify(result.structuredContent));
  return result.structuredContent;
}

async function inspectPage(url) {
  const { page, context, faults } = await openPage(browser, new URL(url).origin);
  await page.goto(url);
  await page.waitForSelector('li');
  const seen = { heading: await page.textContent('h1'), notes: await page.locator('li').count() };
  assert.deepEqual(faults, []);
  await context.close();
  return seen;
}

test('an agent makes a page with a backend, changes it safely, and undoes that', async () => {
  const { id: project_id } = await callTool('manage_project', { action: 'create', name: 'Notes' });
  const ddl = 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);';
  await callTool('manage_backend', { action: 'create', project_id, ddl });
  const actions = [
    { name: 'add_note', sql: 'INSERT INTO notes (text) VALUES (:text)' },
    { name: 'list_notes', sql: 'SELECT id FROM notes ORDER BY id' },
  ];
  await callTool('manage_backend', { action: 'update', project_id, actions });
  const { slug, url } = await callTool('manage_frontend', { action: 'create', project_id, type: 'html', content });
  assert.deepEqual(await inspectPage(url), { heading: 'Notes', notes: 1 });
  const of = { project_id, slug };
  const { active_revision_id: first } = await callTool('manage_frontend', { action: 'list_revisions', ...of });
  const edits = [{ find: '<h1>Notes</h1>', replace: '<h1>My notes</h1>' }];
  const { revision } = await callTool('manage_frontend', { action: 'create_revision', ...of, base_revision_id: first, edits });
  assert.deepEqual(await inspectPage(url), { heading: 'Notes', notes: 2 });
  const draft = revision.revision_id;
  await callTool('manage_frontend', { action: 'promote', ...of, revision_id: draft, expected_active_revision_id: first });
  assert.deepEqual(await inspectPage(url), { heading: 'My notes', notes: 3 });
  await callTool('manage_frontend', { action: 'rollback', ...of, revision_id: first, expected_active_revision_id: draft });
  assert.deepEqual(await inspectPage(url), { heading: 'Notes', notes: 4 });
});
