// The owner's console, in a browser: somebody signed in to it, and what is there to be looked at.
import assert from 'node:assert/strict';
import { openPage, startBrowser } from './browser.mjs';
import { startSvc } from './svc.mjs';

// The server's own console; another address may serve the same files, with the server's port in place of `{port}`.
const pattern = process.env.SVC_CONSOLE_ORIGIN ?? 'http://console.localhost:{port}';

/** Starts a server and a browser, and makes a workspace with a key of each role. */
export async function startConsole(options) {
  // One after the other: a server that does not start leaves no browser behind.
  const svc = await startSvc(options);
  const browser = await startBrowser();
  const origin = pattern.replace('{port}', new URL(svc.url).port);
  await svc.operate('namespace', 'create', 'acme', '--plan', 'pro');
  const makeKey = async (role) => (await svc.operate('key', 'create', 'acme', '--role', role)).credential;
  const keys = {};
  for (const role of ['viewer', 'editor', 'admin', 'owner']) keys[role] = await makeKey(role);
  return {
    svc,
    browser,
    origin,
    keys,
    makeKey,
    /** Calls the API as the owner. A body that is a text is sent as it is. */
    async ask(method, path, body) {
      const answer = await fetch(`${svc.url}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${keys.owner}` },
        body: typeof body === 'string' ? body : body && JSON.stringify(body),
      });
      const said = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said}`);
      return said && JSON.parse(said);
    },
    open: (how) => openConsole(browser, { origin, keys, sites: svc.url }, how),
    async stop() {
      await browser.close();
      await svc.stop();
    },
  };
}

/**
 * Opens the console in a context of its own, signed in with a key of a role. `requests` are the operations that were called since
 * `visit` began.
 */
async function openConsole(browser, { origin, keys, sites }, { role = 'owner', key = keys[role], ...looks } = {}) {
  const opened = await openPage(browser, origin, looks);
  const { page, context } = opened;
  const requests = [];
  const astray = [];
  page.on('request', (request) => {
    const { pathname, origin: to, protocol } = new URL(request.url());
    if (pathname.startsWith('/api/')) requests.push(`${request.method()} ${pathname}`);
    // A preview's frame asks the sites host, and the console itself nobody but its own.
    const isPreview = to === sites && request.frame() !== page.mainFrame();
    if (to !== origin && !isPreview && protocol !== 'blob:') astray.push(request.url());
  });
  if (key) {
    await page.goto(`${origin}/login`);
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByRole('button', { name: 'Sign in with key', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Projects', exact: true }).waitFor();
    await settle(page);
  }
  return {
    ...opened,
    requests,
    async visit(path) {
      requests.length = 0;
      await page.goto(origin + path);
      await settle(page);
    },
    /** Closes the context, after a look at what must not have happened. */
    async close() {
      await context.close();
      const isAllowed = (fault) => fault === `request to ${sites}` || opened.allowed?.some((one) => fault.includes(one));
      assert.deepEqual([...opened.faults.filter((fault) => !isAllowed(fault)), ...astray], []);
    },
    allow(...texts) {
      (opened.allowed ??= []).push(...texts);
    },
  };
}

/** Waits until the screen of an address is there. */
export const settle = (page) => page.locator('main[aria-busy="false"]').waitFor();

export const button = (within, name) => within.getByRole('button', { name, exact: true });
export const field = (within, label) => within.getByLabel(label, { exact: true });
export const textbox = (within, name) => within.getByRole('textbox', { name, exact: true });
export const table = (within, name) => within.getByRole('table', { name, exact: true });
export const link = (within, name) => within.getByRole('link', { name, exact: true });
export const toggle = (within, name) => within.getByRole('switch', { name, exact: true });
export const dialog = (page, name) => page.getByRole('dialog', { name, exact: true });
export const said = (page) => page.getByRole('status', { name: 'Messages', exact: true });

/** Makes a project with a table, a page and two actions. */
export async function makeShop({ ask }, name = 'Web shop') {
  const project = await ask('POST', '/projects', { name });
  const at = `/projects/${project.id}`;
  await ask('POST', `${at}/backend`, {
    ddl: 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL, big INTEGER, raw BLOB, loose); INSERT INTO notes (text) VALUES (\'First\');',
    realtime: true,
  });
  await ask('PUT', `${at}/backend/actions`, {
    actions: [
      { name: 'sign', sql: 'INSERT INTO notes (text) VALUES (:text) RETURNING id', note: 'Writes a note.' },
      { name: 'latest', sql: 'SELECT id, text FROM notes ORDER BY id DESC LIMIT :most', defaults: { most: 20 } },
    ],
  });
  const page = await ask('POST', `${at}/frontends`, { type: 'markdown', content: '# Harbour\n\nOpen from nine.\n' });
  return { project, page, at, path: `/p/${project.id}` };
}
