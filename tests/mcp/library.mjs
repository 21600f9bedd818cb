// An app whose actions are tools for visitors' agents: more of them than a page of the list has room for.
import assert from 'node:assert/strict';

/** How many of its actions are tools. */
export const ACTIONS = 202;

const rules = ['deploy', 'mcp', 'op', 'op_deployment'];
/** What its tests need of a server. */
export const limits = Object.fromEntries(rules.flatMap((rule) => [[`${rule}_per_minute`, 100000], [`${rule}_burst`, 100000]]));

/** Makes it; answers the address of its tools. */
export async function startLibraryApp(svc) {
  const { credential } = await svc.operate('namespace', 'create', 'library');
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${credential}` };
    const answer = await fetch(new URL(`/api/v1/projects${path}`, svc.url), { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return answer.json();
  };
  const { id } = await ask('POST', '', { name: 'Library' });
  await ask('POST', `/${id}/backend`, { ddl: 'CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT UNIQUE, by TEXT)' });
  await ask('PUT', `/${id}/backend/actions`, {
    actions: [
      { name: 'add_book', sql: 'INSERT INTO books (title, by) VALUES (:title, :by) RETURNING id', note: 'Adds a book.' },
      { name: 'list_books', sql: 'SELECT id, title, by FROM books ORDER BY id', note: 'Lists the books.' },
      { name: 'my_books', sql: 'SELECT id FROM books WHERE by = :svc_user_id' },
    ],
  });
  const note = 'A note of the greatest length. '.repeat(40).slice(0, 1000);
  const names = Array.from({ length: ACTIONS - 2 }, (_, n) => `more_${String(n).padStart(3, '0')}`);
  await ask('PUT', `/${id}/backend/actions`, { actions: names.map((name) => ({ name, sql: 'SELECT 1 AS one', note })) });
  await ask('POST', `/${id}/frontends`, { type: 'markdown', requested_slug: 'library', content: '# My library' });
  await ask('PATCH', `/${id}/backend`, { agents: true });
  return `${svc.url}/library/mcp`;
}
