// Folders as a build tool writes them, published by the client's commands: at a slug, at the root, in previews, and in tabs that are open
// while others release.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { openPage, startBrowser } from './lib/browser.mjs';
import { binary, startSvc } from './lib/svc.mjs';

const run = promisify(execFile);
let svc, browser, root, command, origin;

/** Name of a file of a version, as build tools write it. */
const hashed = (name, version, ending) =>
  `assets/${name}-${createHash('sha256').update(`${name} ${version}`).digest('hex').slice(0, 8)}.${ending}`;

/** Writes a version of an app into a folder; its pages name files by addresses that begin with `base`. */
async function build(folder, base, version) {
  const [script, chunk, style] = [hashed('app', version, 'js'), hashed('more', version, 'js'), hashed('app', version, 'css')];
  const head = '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">';
  const files = {
    'index.html': `${head}<title>App</title><link rel="stylesheet" crossorigin href="${base}${style}">
<script type="module" crossorigin src="${base}${script}"></script><h1>App</h1><button>More</button><output></output></html>`,
    '404.html': `${head}<title>Not here</title><h1>Not here</h1></html>`,
    [script]: `document.querySelector('button').addEventListener('click', async () => {
  const { text } = await import('./${chunk.replace('assets/', '')}');
  document.querySelector('output').textContent = text;
});
document.documentElement.dataset.version = '${version}';`,
    [chunk]: `export const text = 'more of ${version}';`,
    [style]: 'h1 { color: rgb(1, 2, 3) }',
    _headers: '/*\n  Cross-Origin-Opener-Policy: same-origin\n  Cross-Origin-Embedder-Policy: require-corp\n',
  };
  await rm(join(root, folder), { recursive: true, force: true });
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-sites-'));
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const { credential } = await svc.operate('namespace', 'create', 'acme');
  const env = {
    ...process.env,
    HOME: root,
    XDG_CONFIG_HOME: join(root, 'config'),
    SVC_SERVER: svc.url,
    SVC_CREDENTIAL: credential,
  };
  command = async (...words) => {
    const { stdout } = await run(binary, [...words, '--json'], { cwd: root, env });
    return JSON.parse(stdout);
  };
  await command('project', 'create', 'House');
  await build('guide', './', 1);
  await build('app', '/', 1);
  const guide = await command('publish', 'guide', '--project', 'House', '--name', 'guide');
  const options = ['--fallback', 'index.html', '--immutable', '/assets/*'];
  await command('publish', 'app', '--project', 'House', '--name', 'app', ...options);
  await command('project', 'update', 'House', '--home', 'app');
  ({ origin } = new URL(guide.published[0].url));
});

after(async () => {
  await browser?.close();
  await svc?.stop();
  await rm(root, { recursive: true, force: true });
});

/** Opens an address in a browser of its own, which also writes down what is missing. */
async function open(url) {
  const opened = await openPage(browser, new URL(url).origin);
  opened.page.on('response', (answer) => {
    if (answer.status() >= 400) opened.faults.push(`${answer.status()} ${answer.url()}`);
  });
  const answer = await opened.page.goto(url);
  assert.equal(answer.status(), 200, url);
  await opened.page.waitForFunction(() => document.documentElement.dataset.version);
  return opened;
}

/** Presses the button, which loads a script by its name; answers its text. */
async function loadMore(page) {
  await page.getByRole('button', { name: 'More' }).click();
  await page.waitForFunction(() => document.querySelector('output').textContent);
  return page.textContent('output');
}

/** Looks at an address of a version: it has its style and its scripts, and nothing is missing. */
async function look(url, version, isIsolated) {
  const { page, context, faults } = await open(url);
  try {
    assert.equal(await loadMore(page), `more of ${version}`, url);
    const shown = await page.evaluate(() => [
      getComputedStyle(document.querySelector('h1')).color,
      crossOriginIsolated,
      location.href,
    ]);
    assert.deepEqual(shown, ['rgb(1, 2, 3)', isIsolated, url]);
    assert.deepEqual(faults, [], url);
  } finally {
    await context.close();
  }
}

/** Status of an address, which no resolver need know. */
function status(url) {
  const { host, port, pathname } = new URL(url);
  return new Promise((found, failed) => {
    const request = { host: '127.0.0.1', port, path: pathname, headers: { host } };
    get(request, (answer) => found(answer.resume().statusCode)).on('error', failed);
  });
}

test('a build with relative addresses works at its slug', async () => {
  await look(`${origin}/guide/`, 1, true);
});

test('a build with absolute addresses works at the root and at its slug, at every depth', async () => {
  for (const path of ['/', '/users/7', '/app/', '/app/users/7?tab=1#top']) {
    await look(`${origin}${path}`, 1, true);
  }
  assert.equal(await status(`${origin}/assets/none.js`), 404);
  const { page, context, faults } = await openPage(browser, origin);
  try {
    const answer = await page.goto(`${origin}/users/none.html`);
    assert.equal(answer.status(), 404);
    assert.equal(await page.title(), 'Not here');
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});

test('a draft is looked at in its previews', async () => {
  await build('guide', './', 2);
  const guide = await command('push', 'guide', '--project', 'House', '--draft');
  await look(guide.preview_url, 2, false);
  await look(guide.revision.preview_origin, 2, true);
  await build('app', '/', 2);
  const app = await command('push', 'app', '--project', 'House', '--draft');
  await look(app.revision.preview_origin, 2, true);
  await look(`${app.revision.preview_origin}users/7`, 2, true);
  await look(`${origin}/`, 1, true);
});

test('a tab that is open loads the scripts that it was opened with, until they are taken back', async () => {
  const [{ revision_id: first }] = (await command('revision', 'list', 'app', '--project', 'House')).revisions.filter(
    ({ state }) => state === 'active',
  );
  const old = await open(`${origin}/users/7`);
  await build('app', '/', 3);
  await command('push', 'app', '--project', 'House');
  await look(`${origin}/`, 3, true);
  assert.equal(await loadMore(old.page), 'more of 1');
  assert.deepEqual(old.faults, []);
  await old.context.close();
  await command('revision', 'rollback', 'app', first, '--project', 'House');
  await look(`${origin}/users/7`, 1, true);
  assert.equal(await status(`${origin}/${hashed('more', 1, 'js')}`), 200);
  assert.equal(await status(`${origin}/${hashed('more', 3, 'js')}`), 404);
});
