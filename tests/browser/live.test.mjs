// The poll of the guide in two pages: bars move while others vote; and connections that are lost, hidden and ended.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const ddl = "CREATE TABLE votes (id INTEGER PRIMARY KEY, choice TEXT NOT NULL CHECK (choice IN ('tea', 'coffee')));";
const actions = [
  { name: 'counts', sql: 'SELECT choice, count(*) AS n FROM votes GROUP BY choice ORDER BY choice' },
  { name: 'vote', sql: 'INSERT INTO votes (choice) VALUES (:choice)' },
];
const blank = '<!doctype html><html lang="en"><title>Blank</title><link rel="icon" href="data:,"><p>Blank</p></html>';

let svc, browser, ask, project, poll, page;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  ask = await svc.owner('acme');
  project = (await ask('POST', '', { name: 'Poll' })).id;
  await ask('POST', `/${project}/backend`, { ddl });
  await ask('PUT', `/${project}/backend/actions`, { actions });
  const guide = await readFile(new URL('../../docs/live.md', import.meta.url), 'utf8');
  const content = /```html\n([^]*?svc\.db\.live[^]*?)```/.exec(guide)[1];
  assert.ok(content.trim().split('\n').length <= 25, 'a page of 25 lines');
  poll = await ask('POST', `/${project}/frontends`, { type: 'html', content, requested_slug: 'poll' });
  page = await ask('POST', `/${project}/frontends`, { type: 'html', content: blank, requested_slug: 'blank' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens a page in a context of its own. */
async function open(url, prepare = async () => {}) {
  const opened = await openPage(browser, new URL(url).origin);
  await prepare(opened.page);
  await opened.page.goto(url);
  return opened;
}

const bars = (tab, text) =>
  tab.waitForFunction((text) => document.querySelector('div').textContent.replace(/\s+/g, ' ').trim() === text, text);

/** Listens in a page, and writes down there what it is told. */
const listen = (tab, action = 'counts', params = {}) =>
  tab.evaluate(
    ([action, params]) => {
      window.seen = [];
      window.stop = svc.db.live(action, params, ({ rows }) => window.seen.push(rows), {
        onError: (error) => window.seen.push(`${error.name} ${error.code} ${error.status}`),
      });
    },
    [action, params],
  );

const seen = (tab) => tab.evaluate(() => window.seen);
const until = (tab, count) => tab.waitForFunction((count) => window.seen.length >= count, count, { timeout: 60_000 });

/** Every wait of a page's but its first is over at once. */
const hasten = (tab) =>
  tab.addInitScript(() => {
    const wait = window.setTimeout;
    window.setTimeout = (work, time = 0, ...more) => wait(work, Math.min(time, 50), ...more);
  });

test('bars move in one page while somebody votes in another', async () => {
  const ada = await open(poll.url);
  const bob = await open(poll.url);
  await ada.page.getByRole('button', { name: 'tea' }).click();
  await bars(bob.page, 'tea: 1');
  await bob.page.getByRole('button', { name: 'coffee' }).click();
  await bob.page.getByRole('button', { name: 'tea' }).click();
  await bars(ada.page, 'coffee: 1 tea: 2');
  await bars(bob.page, 'coffee: 1 tea: 2');
  for (const { page } of [ada, bob]) {
    assert.equal(await page.evaluate(() => document.querySelector('meter').value), 1);
    assert.equal(await page.getByRole('status').textContent(), '');
    await page.close();
  }
});

test('all queries of a page share one socket, and one that has stopped is not called', async () => {
  const { page: tab } = await open(page.url);
  const sockets = [];
  tab.on('websocket', (socket) => sockets.push(socket.url()));
  await listen(tab);
  await until(tab, 1);
  await tab.evaluate(() => {
    window.others = [];
    for (let n = 0; n < 3; n++) svc.db.live('counts', {}, ({ rows }) => window.others.push(rows));
  });
  await tab.waitForFunction(() => window.others.length === 3);
  await tab.evaluate(() => window.stop());
  await tab.evaluate(() => svc.db.op('vote', { choice: 'tea' }));
  await tab.waitForFunction(() => window.others.length === 6);
  assert.equal((await seen(tab)).length, 1);
  assert.equal(sockets.length, 1, sockets.join());
  await tab.close();
});

test('why a query ends is told', async () => {
  const { page: tab } = await open(page.url);
  for (const [action, params, expected] of [
    ['nothing', {}, 'SvcError not_found 404'],
    ['vote', { choice: 'tea' }, 'SvcError invalid_request 400'],
    ['counts', { more: 1 }, 'SvcError params_mismatch 400'],
  ]) {
    await listen(tab, action, params);
    await until(tab, 1);
    assert.deepEqual(await seen(tab), [expected]);
  }
  await tab.close();
});

test('a connection that is lost is opened again, and only what is new is told', async () => {
  const { page: tab } = await open(page.url, async (tab) => {
    await hasten(tab);
    await tab.addInitScript(() => {
      const Socket = window.WebSocket;
      window.sockets = [];
      window.WebSocket = class extends Socket {
        constructor(url) {
          super(url);
          window.sockets.push(this);
        }
      };
    });
  });
  await listen(tab);
  await until(tab, 1);
  await tab.evaluate(() => window.sockets.at(-1).close(4000));
  await tab.waitForFunction(() => window.sockets.length === 2 && window.sockets[1].readyState === 1);
  await tab.evaluate(() => svc.db.op('vote', { choice: 'tea' }));
  await until(tab, 2);
  const [before, now] = await seen(tab);
  assert.notDeepEqual(before, now);
  assert.equal((await seen(tab)).length, 2);
  await tab.close();
});

test('a hidden page lets go, and takes up again when it is looked at', async () => {
  const { page: tab } = await open(page.url, hasten);
  await listen(tab);
  await until(tab, 1);
  const show = (state) =>
    tab.evaluate((state) => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, state);
  await show('hidden');
  await tab.waitForTimeout(500);
  await tab.evaluate(() => svc.db.op('vote', { choice: 'coffee' }));
  await tab.waitForTimeout(300);
  assert.equal((await seen(tab)).length, 1, 'nobody is told while nobody looks');
  await show('visible');
  await until(tab, 2);
  await tab.close();
});
