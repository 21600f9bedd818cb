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
  { name: 'echo', sql: 'SELECT :n AS n' },
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

const waitForBars = (tab, text) =>
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

const seenResults = (tab) => tab.evaluate(() => window.seen);
const waitForResults = (tab, count) => tab.waitForFunction((count) => window.seen.length >= count, count, { timeout: 60_000 });

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
  await waitForBars(bob.page, 'tea: 1');
  await bob.page.getByRole('button', { name: 'coffee' }).click();
  await bob.page.getByRole('button', { name: 'tea' }).click();
  await waitForBars(ada.page, 'coffee: 1 tea: 2');
  await waitForBars(bob.page, 'coffee: 1 tea: 2');
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
  await waitForResults(tab, 1);
  await tab.evaluate(() => {
    window.others = [];
    for (let n = 0; n < 3; n++) svc.db.live('counts', {}, ({ rows }) => window.others.push(rows));
  });
  await tab.waitForFunction(() => window.others.length === 3);
  await tab.evaluate(() => window.stop());
  await tab.evaluate(() => svc.db.op('vote', { choice: 'tea' }));
  await tab.waitForFunction(() => window.others.length === 6);
  assert.equal((await seenResults(tab)).length, 1);
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
    await waitForResults(tab, 1);
    assert.deepEqual(await seenResults(tab), [expected]);
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
  await waitForResults(tab, 1);
  await tab.evaluate(() => window.sockets.at(-1).close(4000));
  await tab.waitForFunction(() => window.sockets.length === 2 && window.sockets[1].readyState === 1);
  await tab.evaluate(() => svc.db.op('vote', { choice: 'tea' }));
  await waitForResults(tab, 2);
  const [before, now] = await seenResults(tab);
  assert.notDeepEqual(before, now);
  assert.equal((await seenResults(tab)).length, 2);
  await tab.close();
});

test('a hidden page lets go, and takes up again when it is looked at', async () => {
  const { page: tab } = await open(page.url, hasten);
  await listen(tab);
  await waitForResults(tab, 1);
  const show = (state) =>
    tab.evaluate((state) => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, state);
  await show('hidden');
  await tab.waitForTimeout(500);
  await tab.evaluate(() => svc.db.op('vote', { choice: 'coffee' }));
  await tab.waitForTimeout(300);
  assert.equal((await seenResults(tab)).length, 1, 'nobody is told while nobody looks');
  await show('visible');
  await waitForResults(tab, 2);
  await tab.close();
});

/** Asks for so many queries at once, and writes down what each is told. */
const subscribeMany = (tab, many) =>
  tab.evaluate((many) => {
    window.told = Array.from({ length: many }, () => []);
    window.stops = window.told.map((told, n) =>
      svc.db.live('echo', { n }, ({ rows }) => told.push(rows[0].n), {
        onError: ({ code, status, message }) => told.push(`${code} ${status} ${message}`),
      }),
    );
  }, many);

const toldResults = (tab) => tab.evaluate(() => window.told);
const waitForAllResults = (tab) => tab.waitForFunction(() => window.told.every(({ length }) => length === 1), undefined, { timeout: 60_000 });

test('a page has as many queries as a socket may, and one more is told why it is none', async () => {
  const { page: tab } = await open(page.url);
  const sockets = [];
  tab.on('websocket', (socket) => sockets.push(socket));
  await subscribeMany(tab, 60);
  await waitForAllResults(tab);
  const all = await toldResults(tab);
  assert.deepEqual(all.slice(0, 20), Array.from({ length: 20 }, (_, n) => [n]));
  for (const [text] of all.slice(20)) {
    assert.equal(text, 'rate_limited 429 A socket has 20 live queries at most. Stop one of them, then subscribe again.');
  }
  // Where one has stopped there is room for another.
  await tab.evaluate(() => {
    window.stops[3]();
    window.told.push([]);
    svc.db.live('echo', { n: 'later' }, ({ rows }) => window.told.at(-1).push(rows[0].n));
  });
  await waitForAllResults(tab);
  assert.deepEqual((await toldResults(tab)).at(-1), ['later']);
  assert.equal(sockets.length, 1);
  assert.equal(sockets[0].isClosed(), false);
  await tab.close();
});

test('more queries than a socket may ask for at once are asked for one after another', async () => {
  const plenty = ['op', 'op_deployment'].flatMap((rule) => [[`${rule}_per_minute`, 100000], [`${rule}_burst`, 100000]]);
  const own = await startSvc({ limits: { ...Object.fromEntries(plenty), live_per_socket: 70 } });
  try {
    const owner = await own.owner('acme');
    const { id } = await owner('POST', '', { name: 'House' });
    await owner('POST', `/${id}/backend`, { ddl });
    await owner('PUT', `/${id}/backend/actions`, { actions });
    const { url } = await owner('POST', `/${id}/frontends`, { type: 'html', content: blank });
    const { page: tab } = await open(url);
    const sockets = [];
    tab.on('websocket', (socket) => sockets.push(socket));
    // Those that come and go before their turn are not asked for at all.
    await tab.evaluate(() => {
      for (let n = 0; n < 500; n++) svc.db.live('echo', { n: -1 - n }, () => {})();
    });
    await subscribeMany(tab, 70);
    await waitForAllResults(tab);
    assert.deepEqual(await toldResults(tab), Array.from({ length: 70 }, (_, n) => [n]));
    await tab.evaluate(() => {
      for (const stop of window.stops) stop();
      window.told = [[]];
      window.last = svc.db.live('echo', { n: 'after' }, ({ rows }) => window.told[0].push(rows[0].n));
    });
    await waitForAllResults(tab);
    assert.equal(sockets.length, 1);
    assert.equal(sockets[0].isClosed(), false);
    // A page without queries lets go after a while.
    const closed = sockets[0].waitForEvent('close');
    await tab.evaluate(() => window.last());
    await closed;
    await tab.close();
  } finally {
    await own.stop();
  }
});

test('params that are larger than a frame end their query and no other', async () => {
  const { page: tab } = await open(page.url, hasten);
  await listen(tab);
  await waitForResults(tab, 1);
  await tab.evaluate(() => {
    window.told = [[]];
    svc.db.live('echo', { n: 'x'.repeat(20_000) }, () => {}, {
      onError: ({ code, status }) => window.told[0].push(`${code} ${status}`),
    });
  });
  await waitForAllResults(tab);
  assert.deepEqual(await toldResults(tab), [['payload_too_large 413']]);
  const before = (await seenResults(tab)).length;
  await tab.evaluate(() => svc.db.op('vote', { choice: 'tea' }));
  await waitForResults(tab, before + 1);
  await tab.close();
});

/** Runs a query over sockets of the test's own: whether each opens, and the code with which it ends then. */
async function openScriptedPage(script) {
  const opened = await open(page.url, (tab) =>
    tab.addInitScript((script) => {
      window.waits = [];
      window.opened = 0;
      Math.random = () => 0.999999;
      const wait = window.setTimeout;
      window.setTimeout = (work, time = 0, ...more) => {
        // Waits between attempts are random, and all others are whole.
        if (!Number.isInteger(time)) window.waits.push(Math.round(time / 1000));
        return wait(work, Math.min(time, 20), ...more);
      };
      window.WebSocket = class {
        readyState = 0;
        constructor() {
          const [opens, code] = script[window.opened++] ?? [];
          queueMicrotask(() => {
            if (code === undefined) return;
            if (opens) {
              this.readyState = 1;
              this.onopen();
            }
            this.readyState = 3;
            this.onclose({ code, reason: 'for a reason' });
          });
        }
        send() {}
        close() {}
      };
    }, script),
  );
  await listen(opened.page);
  return opened;
}

test('the waits between attempts are those of rooms', async () => {
  const refused = [false, 1006];
  const unreachable = 'SvcError unreachable 0';
  for (const [script, waits, said] of [
    [[refused, refused, refused, refused, refused, refused], [1, 2, 5, 10, 30, 30], [unreachable]],
    // A connection that is lost is no refusal, and the waits begin anew.
    [[[true, 1006], refused, refused, refused, refused], [1, 2, 5, 10, 30], []],
    [[refused, refused, [true, 1001], refused], [1, 2, 1, 2], []],
    [[[true, 1013]], [10], []],
    [[[true, 1013], refused], [10, 30], []],
    [[[true, 1008]], [], ['SvcError closed 0']],
  ]) {
    const { page: tab, context } = await openScriptedPage(script);
    await tab.waitForFunction(([opened, ended]) => window.opened >= opened || window.seen.length >= ended, [
      script.length + (waits.length ? 1 : 0),
      waits.length ? 2 : 1,
    ]);
    // Time enough for one more, which must not come.
    await tab.waitForTimeout(100);
    const found = await tab.evaluate(() => [window.opened, window.waits, window.seen]);
    assert.deepEqual(found, [script.length + (waits.length ? 1 : 0), waits, said], JSON.stringify(script));
    await context.close();
  }
});
