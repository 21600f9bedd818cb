// The table of operations, the files, and their sizes: what can be known without a browser.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { startSvc } from '../lib/svc.mjs';

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../../../host/assets/console');
const own = async () => (await readdir(join(folder, 'app'), { recursive: true })).filter((name) => name.endsWith('.js')).map((name) => join('app', name));
const text = (name) => readFile(join(folder, name), 'utf8');
const brotli = async (name) => brotliCompressSync(await readFile(join(folder, name))).length;
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

let svc;
before(async () => {
  svc = await startSvc();
});
after(() => svc?.stop());

test('each operation of owners is used, or listed with a reason', async () => {
  const { list, unused } = await import(join(folder, 'app/api.js'));
  const description = await (await fetch(`${svc.url}/api/v1/openapi.json`)).json();
  const described = new Map();
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation['x-role']) described.set(operation.operationId, `${method.toUpperCase()} ${path}`);
    }
  }
  const shape = (line) => line.replace(/\{[^}]*\}/g, '{}');
  const used = new Map(list().map(({ id, method, path }) => [id, `${method} ${path}`]));
  const sources = (await Promise.all((await own()).filter((name) => name !== 'app/api.js').map(text))).join('\n');
  const missing = [...described.keys()].filter((id) => !used.has(id) && !unused[id]);
  assert.deepEqual(missing, []);
  const unknown = [...used.keys()].filter((id) => !described.has(id));
  assert.deepEqual(unknown, []);
  assert.deepEqual(Object.keys(unused).filter((id) => !described.has(id)), []);
  for (const [id, line] of used) {
    if (described.has(id)) assert.equal(shape(line), shape(described.get(id)), id);
    assert.ok(sources.includes(`'${id}'`), `${id} is in the table, and no screen calls it`);
  }
});

test('no file makes markup of text, or script of either', async () => {
  for (const name of await own()) {
    const source = await text(name);
    assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function|localStorage|document\.cookie/, name);
    const checked = spawnSync(process.execPath, ['--input-type=module', '--check', '-'], { input: source, encoding: 'utf8' });
    assert.equal(checked.status, 0, `${name}: ${checked.stderr}`);
    assert.ok(source.split('\n').length <= 400, `${name} has more than 400 lines`);
  }
  const page = await text('index.html');
  assert.deepEqual([...page.matchAll(/<script(?![^>]*(?:src=|importmap))[^>]*>/g)], []);
  assert.doesNotMatch(page, / on\w+=| style=/);
});

test('every file that is named is there', async () => {
  const { modules } = JSON.parse(await text('vendor/vendor.json'));
  const names = new Set([...(await own()), ...Object.keys(modules)]);
  for (const name of await own()) {
    for (const [, from] of (await text(name)).matchAll(/(?:from|import) ?\(?'([^']+)'/g)) assert.ok(names.has(from), `${name}: ${from}`);
  }
  for (const { file, sha256 } of Object.values(modules)) {
    assert.equal(createHash('sha256').update(await readFile(join(folder, 'vendor', file))).digest('hex'), sha256, file);
  }
  for (const [, name] of (await text('index.html')).matchAll(/\{\{([\w./-]+\.\w+)\}\}/g)) await text(name);
});

test('files are as small as they should be', async () => {
  const vendor = ['preact.mjs', 'hooks.mjs', 'signals.mjs', 'signals-core.mjs', 'htm.mjs'].map((name) => `vendor/${name}`);
  const first = ['index.html', 'styles.css', ...vendor, 'app/main.js', 'app/api.js', 'app/session.js', 'app/load.js', 'app/ui.js', 'app/screens/projects.js'];
  // With an icon and the two answers that the screen waits for these are 16 requests.
  assert.ok(first.length <= 13);
  const sizes = await Promise.all(first.map(brotli));
  assert.ok(sum(sizes) <= 60 * 1024, `the first screen has ${sum(sizes)} bytes`);
  const all = sum(await Promise.all(['index.html', 'styles.css', ...vendor, ...(await own())].map(brotli)));
  assert.ok(all <= 120 * 1024, `all screens have ${all} bytes`);
  const editor = await brotli('vendor/editor.js');
  assert.ok(editor <= 135 * 1024, `the editor has ${editor} bytes`);
  console.log(`first screen ${sum(sizes)}, all screens ${all}, editor ${editor} bytes in brotli`);
});

test('JSON is read and written without rounding', async () => {
  const { Raw, Real, read, write } = await import(join(folder, 'app/exact.js'));
  for (const json of ['9007199254740993', '-9223372036854775808', '18446744073709551616', '0', '-0.5', '1.0', '1e300', 'null', 'true', '""', '"\\u0000\\ud83c\\udf0a\\n"', '[]', '{}', '[1,[2.50,{"a":null}]]', '{"__proto__":1,"constructor":2,"":3}']) {
    assert.deepEqual(JSON.parse(write(read(json))), JSON.parse(json), json);
    if (!json.includes('"')) assert.equal(write(read(json)), json);
  }
  assert.ok(read('1.0') instanceof Real);
  assert.equal(read('9007199254740991'), Number.MAX_SAFE_INTEGER);
  assert.equal(typeof read('9007199254740992'), 'bigint');
  for (const wrong of ['', '{', '[1', '"a', '01', '1 2', 'nul', '{"a" 1}', '{1:2}']) assert.throws(() => read(wrong), SyntaxError, wrong);
  assert.equal(write({ a: undefined, b: new Raw('{"x":1.50}') }), '{"b":{"x":1.50}}');
});

test('ends of lines stay where nobody touched them', async () => {
  const { common, keepBreaks } = await import(join(folder, 'app/breaks.js'));
  assert.equal(keepBreaks('a\r\nb\r\n', 'a\nb\n'), 'a\r\nb\r\n');
  assert.equal(keepBreaks('a\r\nb\r\n', 'a\nx\nb\n'), 'a\r\nx\r\nb\r\n');
  assert.equal(keepBreaks('a\rb\r\nc\nd', 'a\nb\nc\nD'), 'a\rb\r\nc\nD');
  assert.equal(keepBreaks('plain\n', 'plain\nmore'), 'plain\nmore');
  assert.deepEqual(common('🌊', '🌋'), { start: 0, end: 0 });
  assert.deepEqual(common('aXb', 'aYYb'), { start: 1, end: 1 });
});
