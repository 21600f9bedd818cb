// The guest in JavaScript, as a component in the real server.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { binary, startSvc } from '../../browser/lib/svc.mjs';
import { rows } from './csv.js';

const here = dirname(fileURLToPath(import.meta.url));
const run = promisify(execFile);

let directory;
let component;
let svc;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cards-'));
  component = join(directory, 'cards.wasm');
  await run('node', ['build.mjs', component], { cwd: here });
  svc = await startSvc({ guests: { render: component } });
});

after(async () => {
  await svc?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Publishes a share, and answers its page. */
async function publishedPage(type, content) {
  const { url } = await svc.deploy({ type, content, title: 'Some <title>' });
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  return answer.text();
}

test('rows are read as RFC 4180 has them', () => {
  assert.deepEqual(rows('a,b\r\n"c, d","e\n""f"""\n'), [
    ['a', 'b'],
    ['c, d', 'e\n"f"'],
  ]);
  assert.deepEqual(rows('\ufeffa,\n,\n\nb'), [['a', ''], ['', ''], [''], ['b']]);
  assert.deepEqual(rows('a,'), [['a', '']]);
  assert.deepEqual(rows('"open, and\nmore'), [['open, and\nmore']]);
  assert.deepEqual(rows(''), []);
});

test('a table becomes cards, and nothing in it markup', async () => {
  const html = await publishedPage('csv', 'name,note\nAda,"<b>1, 2</b>"\nGrace,"ünï 🎈",more\n');
  assert.match(html, /^<!DOCTYPE html><html lang="en">/);
  assert.match(html, /<title>Some &lt;title&gt;<\/title>/);
  assert.equal(html.match(/<li>/g).length, 2);
  assert.ok(html.includes('<dt>name</dt><dd>Ada</dd><dt>note</dt><dd>&lt;b&gt;1, 2&lt;/b&gt;</dd>'));
  assert.ok(html.includes('<dd>ünï 🎈</dd><dt>Column 3</dt><dd>more</dd>'));
});

test('the other types become plain pages', async () => {
  assert.equal(await publishedPage('html', '<!doctype html><p>as it is'), '<!doctype html><p>as it is');
  assert.ok((await publishedPage('markdown', '# <b>')).includes('<pre># &lt;b&gt;</pre>'));
  assert.ok((await publishedPage('mermaid', 'flowchart TD\n  A --> B')).includes('A --&gt; B</pre>'));
  assert.ok((await publishedPage('json', '{"a": [1]}')).includes('{&quot;a&quot;: [1]}</pre>'));
});

test('what is no JSON is refused as it is by any renderer', async () => {
  await assert.rejects(publishedPage('json', '{'), /render_failed.*This is no JSON/s);
});

test('what wit/README.md says of it works, line by line', async () => {
  const readme = await readFile(join(here, '../../../wit/README.md'), 'utf8');
  const section = readme.split('\n## In JavaScript\n')[1].split('\n## ')[0];
  const [build, operate] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
  await symlink(binary, join(directory, 'svc'));
  const plain = await startSvc();
  const env = { ...process.env, PATH: `${directory}:${process.env.PATH}`, SVC_DATA: plain.data, SVC_CACHE: plain.cache };
  const shell = async (line, cwd) => (await run('bash', ['-ec', line], { cwd, env })).stdout;
  const table = async () => {
    const { url } = await plain.deploy({ type: 'csv', content: 'a,b\n1,2\n' });
    return (await (await fetch(url)).text()).includes('class="cards"');
  };
  try {
    await shell(build, resolve(here, '../../..'));
    // What the check leaves to look at lies where it is run.
    const folder = join(directory, 'operator');
    await mkdir(folder);
    await rename(join(here, 'cards.wasm'), join(folder, 'cards.wasm'));
    assert.equal(await table(), false);
    const lines = operate.trim().split('\n');
    assert.equal(lines.length, 4);
    for (const line of lines) {
      await shell(line, folder);
      assert.equal(await table(), /install|status/.test(line), line);
    }
  } finally {
    await plain.stop();
    await rm(join(here, 'cards.wasm'), { force: true });
  }
});

test('the component is small, and does not grow with its calls', async () => {
  assert.ok((await stat(component)).size < 4 << 20);
  const large = 'name,note\n' + 'Ada,"something, and more"\n'.repeat(4000);
  const first = await publishedPage('csv', large);
  assert.equal(await publishedPage('csv', large), first);
});
