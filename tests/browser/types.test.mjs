// What `svc types` writes, and the typings of the runtime, as a compiler reads them: right calls pass, and each wrong one is found.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import ts from 'typescript';
import { binary, startSvc } from './lib/svc.mjs';

const run = promisify(execFile);

const ddl = 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, likes INTEGER NOT NULL DEFAULT 0);';

const actions = [
  { name: 'sign', sql: 'INSERT INTO notes (text) VALUES (:text) RETURNING id', note: 'Signs the book.' },
  { name: 'recent', sql: 'SELECT id, text, likes FROM notes ORDER BY id DESC' },
  { name: 'clear', sql: 'DELETE FROM notes' },
];

// A page's script, as an author would write it.
const right = `
async function page() {
  const { rows: [made] } = await svc.db.op('sign', { text: 'hi' });
  const id: number = made.id;
  const { rows, rows_affected } = await svc.db.op('recent');
  const text: string | null = rows[0].text;
  const likes: number = rows[id].likes + rows_affected;
  await svc.db.op('clear', {});
  const stop: () => void = svc.db.live('recent', undefined, ({ rows }) => rows[0].text?.length, { onError: (e) => e.code });
  const [signed, list] = await svc.db.batch([
    { action: 'sign', params: { text: { from: [0, 'id'] } } },
    { action: 'recent' },
  ]);
  const both: [number, string | null] = [signed.rows[0].id + likes, list.rows[0].text ?? text];
  const ops: svc.db.Op[] = [{ action: 'clear' }];
  await svc.db.batch(ops);
  stop();
  return both;
}`;

// A line each, all of them wrong.
const wrong = `
svc.db.op('sing', { text: 'hi' });
svc.db.op('sign');
svc.db.op('sign', { test: 'hi' });
svc.db.op('sign', { text: ['hi'] });
svc.db.op('recent', { least: 1 });
svc.db.op('recent').then(({ rows }) => rows[0].title);
svc.db.op('recent').then(({ rows }) => rows[0].text.length);
svc.db.op('clear').then(({ rows }) => rows[0].id.toFixed());
svc.db.live('sign', undefined, () => {});
svc.db.live('recent', undefined, ({ rows }) => rows[0].title);
svc.db.batch([{ action: 'sign' }]);
svc.db.batch([{ action: 'recent' }]).then(([list]) => list.rows[0].title);`;

// Without declarations everything is as it was.
const free = `
interface Note { id: number; text: string }
async function page(name: string) {
  const { rows } = await svc.db.op<Note>('recent', { n: 5 });
  svc.db.live(name, undefined, (result) => result.columns.length);
  const [one] = await svc.db.batch<Note>([{ action: name, params: { text: { from: [0, 'id'] } } }]);
  return [rows[0].text.length, one.rows[0].id, (await svc.db.op('any')).rows[0].any];
}`;

let svc;
let typings;
let declared;

before(async () => {
  svc = await startSvc();
  const { credential } = await svc.operate('namespace', 'create', 'acme');
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${credential}` };
    const answer = await fetch(`${svc.url}/api/v1/projects${path}`, { method, headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return answer.json();
  };
  const { id } = await ask('POST', '', { name: 'Book' });
  await ask('POST', `/${id}/backend`, { ddl });
  await ask('PUT', `/${id}/backend/actions`, { actions });
  typings = await (await fetch(`${svc.url}/_svc/runtime.d.ts`)).text();
  const write = async (...options) => {
    const env = { ...process.env, SVC_SERVER: svc.url, SVC_CREDENTIAL: credential };
    return (await run(binary, ['types', '--project', id, ...options], { env })).stdout;
  };
  declared = { alone: await write(), whole: await write('--runtime') };
});

after(async () => {
  await svc?.stop();
});

/** The lines of `page.ts` in which a strict compiler finds something, with what it finds. */
function findErrors(files) {
  const options = { strict: true, noEmit: true, types: [], target: ts.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'] };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => name in files || fileExists(name);
  host.readFile = (name) => files[name] ?? readFile(name);
  host.getSourceFile = (name, ...rest) =>
    name in files ? ts.createSourceFile(name, files[name], ...rest) : getSourceFile(name, ...rest);
  const found = ts.getPreEmitDiagnostics(ts.createProgram(Object.keys(files), options, host));
  return found.map(({ file, start, messageText }) => {
    const line = file ? file.getLineAndCharacterOfPosition(start).line : -1;
    return { name: file?.fileName, line, said: ts.flattenDiagnosticMessageText(messageText, '\n') };
  });
}

test('right calls pass', () => {
  const files = { 'runtime.d.ts': typings, 'svc-actions.d.ts': declared.alone, 'page.ts': right };
  assert.deepEqual(findErrors(files), []);
  assert.deepEqual(findErrors({ 'svc.d.ts': declared.whole, 'page.ts': right }), []);
});

test('each wrong call is found', () => {
  const found = findErrors({ 'runtime.d.ts': typings, 'svc-actions.d.ts': declared.alone, 'page.ts': wrong });
  const lines = wrong.split('\n').map((_, line) => line).slice(1);
  assert.deepEqual([...new Set(found.map(({ name }) => name))], ['page.ts']);
  assert.deepEqual([...new Set(found.map(({ line }) => line))].sort((a, b) => a - b), lines, JSON.stringify(found, null, 1));
});

test('without declarations any action is taken', () => {
  assert.deepEqual(findErrors({ 'runtime.d.ts': typings, 'page.ts': free }), []);
  const refused = findErrors({ 'runtime.d.ts': typings, 'page.ts': "svc.db.op(5);\nsvc.db.batch([{ name: 'a' }]);" });
  assert.deepEqual(refused.map(({ line }) => line), [0, 1]);
});
