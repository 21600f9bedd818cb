// Pages of one backend in a room, in a real browser: the guide's chat, and connections that are lost.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';
import { connectThroughRelay, hasten, startRelay } from './lib/relay.mjs';

const ddl = 'CREATE TABLE notes (id INTEGER PRIMARY KEY);';
const blank = '<!doctype html><html lang="en"><title>Blank</title><link rel="icon" href="data:,"><p>Blank</p></html>';

let svc, browser, ask, project, chat, page;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  ask = await svc.owner('acme');
  project = (await ask('POST', '', { name: 'House' })).id;
  await ask('POST', `/${project}/backend`, { ddl, realtime: true });
  const guide = await readFile(new URL('../../docs/rooms.md', import.meta.url), 'utf8');
  const content = /```html\n([^]*?svc\.ws\.room[^]*?)```/.exec(guide)[1];
  assert.ok(content.trim().split('\n').length <= 24, 'a page, and a script of 20 lines');
  chat = await ask('POST', `/${project}/frontends`, { type: 'html', content, requested_slug: 'chat' });
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

/** Joins a room in a page, and writes down there what happens. */
function watch(tab, id, options) {
  return tab.evaluate(
    ([id, options]) => {
      window.room = svc.ws.room(id, options);
      window.seen = [];
      for (const name of ['open', 'message', 'presence', 'join', 'leave', 'close', 'error']) {
        window.room.on(name, (event) => window.seen.push([name, event.code ?? event.data ?? event.members ?? null]));
      }
    },
    [id, options],
  );
}

const seenEvents = (tab) => tab.evaluate(() => window.seen);
const roomState = (tab) => tab.evaluate(() => window.room.state);
const roomMembers = (tab) => tab.evaluate(() => window.room.members.map((member) => member.client_id));
const waitForEvents = (tab, name, count = 1) =>
  tab.waitForFunction(
    ([name, count]) => window.seen.filter(([event]) => event === name).length >= count,
    [name, count],
    { timeout: 90_000 },
  );

test('two pages chat with the page of the guide', async () => {
  const [one, two] = [await open(chat.url), await open(chat.url)];
  try {
    await one.page.getByText('2 here').waitFor();
    await two.page.getByText('2 here').waitFor();
    await one.page.getByRole('textbox').fill('<b>Hello</b>');
    await one.page.getByRole('button').click();
    await two.page.getByRole('listitem').filter({ hasText: '<b>Hello</b>' }).waitFor();
    assert.deepEqual(await one.page.getByRole('listitem').allTextContents(), ['me: <b>Hello</b>']);
    assert.equal(await one.page.getByRole('textbox').inputValue(), '');
    await two.context.close();
    await one.page.getByText('1 here').waitFor();
    assert.deepEqual(one.faults, []);
  } finally {
    await one.context.close();
  }
});

test('a room tells of everything that happens in it', async () => {
  const [one, two] = [await open(page.url), await open(page.url)];
  try {
    await watch(one.page, 'a');
    await waitForEvents(one.page, 'open');
    assert.equal(await roomState(one.page), 'open');
    await watch(two.page, 'a');
    await waitForEvents(two.page, 'open');
    await waitForEvents(one.page, 'join');
    assert.equal((await roomMembers(one.page)).length, 2);
    assert.deepEqual(await roomMembers(one.page), await roomMembers(two.page));
    assert.equal(await two.page.evaluate(() => window.room.send('move', { x: 1 }, 'm1')), true);
    assert.equal(await two.page.evaluate(() => window.room.send('empty')), true);
    await waitForEvents(one.page, 'message', 2);
    await two.page.evaluate(() => window.room.send('not allowed', 1, 'm2'));
    await waitForEvents(two.page, 'error');
    await ask('POST', `/${project}/backend/rooms/a/messages`, { type: 'notice', data: 'from the owner' });
    await waitForEvents(two.page, 'message');
    await two.page.evaluate(() => window.room.close());
    await waitForEvents(two.page, 'close');
    await waitForEvents(one.page, 'leave');
    assert.equal((await roomMembers(one.page)).length, 1);
    assert.deepEqual(await roomMembers(two.page), []);
    await waitForEvents(one.page, 'presence', 3);
    const [first, second] = [await seenEvents(one.page), await seenEvents(two.page)];
    const of = (all, name) => all.filter(([event]) => event === name).map(([, what]) => what);
    assert.deepEqual(of(first, 'presence').map((event) => event.members ?? event), [1, 2, 1]);
    assert.deepEqual(of(first, 'message'), [{ x: 1 }, null, 'from the owner']);
    assert.deepEqual(of(second, 'message'), ['from the owner']);
    assert.deepEqual(of(second, 'error'), ['invalid_request']);
    assert.deepEqual(of(second, 'close'), [1000]);
    assert.equal(await roomState(two.page), 'closed');
    assert.equal(await two.page.evaluate(() => window.room.send('late', 1)), false);
    assert.deepEqual([...one.faults, ...two.faults], []);
  } finally {
    await Promise.all([one, two].map(({ context }) => context.close()));
  }
});

test('what is wrong is said at once', async () => {
  const { page: tab, context } = await open(page.url);
  try {
    const told = await tab.evaluate(() => {
      const codes = [];
      for (const id of ['', '.a', 'a b', 'x'.repeat(65)]) {
        try {
          svc.ws.room(id);
        } catch (error) {
          codes.push([error instanceof svc.SvcError, error.code]);
        }
      }
      const room = svc.ws.room('fine');
      try {
        room.on('opened', () => {});
      } catch (error) {
        codes.push(error.name);
      }
      room.id = 'other';
      room.close();
      return [codes, room.id, Object.isFrozen(svc.ws), room.state];
    });
    const refused = [true, 'invalid_room'];
    assert.deepEqual(told, [[refused, refused, refused, refused, 'TypeError'], 'fine', true, 'closed']);
  } finally {
    await context.close();
  }
});

test('a lost connection is opened again, after longer and longer waits', async () => {
  const relay = await startRelay(svc.url);
  const { page: tab, context } = await open(page.url, async (tab) => {
    await hasten(tab);
    await connectThroughRelay(tab, relay);
  });
  try {
    await watch(tab, 'lost');
    await waitForEvents(tab, 'open');
    relay.cut();
    await waitForEvents(tab, 'error');
    assert.equal(await roomState(tab), 'connecting');
    assert.equal(await tab.evaluate(() => window.room.send('x', 1)), false);
    const waits = await tab.evaluate(() => window.waits);
    // The fifth refusal is told before it is waited for.
    assert.deepEqual(waits.slice(0, 5), [1, 2, 5, 10, 30]);
    await tab.waitForFunction(() => window.waits.length > 6);
    assert.deepEqual(await tab.evaluate(() => window.waits.slice(4, 7)), [30, 30, 30]);
    relay.mend();
    await waitForEvents(tab, 'open', 2);
    const events = (await seenEvents(tab)).map(([name, what]) => (name === 'error' || name === 'close' ? `${name} ${what}` : name));
    assert.deepEqual(
      events.filter((name) => !/presence/.test(name)),
      ['open', 'close 1006', 'error unreachable', 'open'],
    );
    // It begins anew.
    const before = await tab.evaluate(() => window.waits.length);
    relay.cut();
    await tab.waitForFunction((before) => window.waits.length > before, before);
    assert.equal(await tab.evaluate((before) => window.waits[before], before), 1);
  } finally {
    await context.close();
    relay.stop();
  }
});

test('waits are random, up to their step', async () => {
  const relay = await startRelay(svc.url);
  const { page: tab, context } = await open(page.url, async (tab) => {
    await connectThroughRelay(tab, relay);
    await tab.addInitScript(() => {
      window.waits = [];
      const wait = window.setTimeout;
      Math.random = () => 0.25;
      window.setTimeout = (work, time = 0) => (window.waits.push(time), wait(work, Math.min(time, 20)));
    });
  });
  try {
    relay.cut();
    await watch(tab, 'lost');
    await tab.waitForFunction(() => window.waits.filter((time) => time > 0).length >= 5);
    const waits = await tab.evaluate(() => window.waits.filter((time) => time > 0).slice(0, 5));
    assert.deepEqual(waits, [250, 500, 1250, 2500, 7500]);
  } finally {
    await context.close();
    relay.stop();
  }
});

test('a page that comes back to the foreground does not wait', async () => {
  const relay = await startRelay(svc.url);
  const { page: tab, context } = await open(page.url, async (tab) => {
    await connectThroughRelay(tab, relay);
    await tab.addInitScript(() => {
      Math.random = () => 0.999999;
      const wait = window.setTimeout;
      // No wait ends by itself.
      window.setTimeout = (work, time = 0) => (time > 500 ? 1e9 : wait(work, time));
    });
  });
  try {
    await watch(tab, 'back');
    await waitForEvents(tab, 'open');
    const attempts = relay.attempts();
    relay.cut();
    await waitForEvents(tab, 'close');
    relay.mend();
    assert.equal(relay.attempts(), attempts);
    await tab.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    assert.equal(await roomState(tab), 'connecting');
    await tab.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await waitForEvents(tab, 'open', 2);
  } finally {
    await context.close();
    relay.stop();
  }
});

/** Runs a room over a socket of the test's own, which closes as it is told. */
async function openScriptedPage(codes, options) {
  const opened = await open(page.url, async (tab) => {
    await hasten(tab);
    await tab.addInitScript((codes) => {
      window.opened = 0;
      window.WebSocket = class {
        readyState = 0;
        constructor() {
          const code = codes[window.opened++];
          queueMicrotask(() => {
            if (code === undefined) return;
            const welcome = { v: 1, type: 'svc:welcome', data: { client_id: 'c', room: 'r', members: 1, seq: 0 } };
            this.onmessage({ data: JSON.stringify(welcome) });
            this.onclose({ code, reason: '' });
          });
        }
        close() {}
      };
    }, codes);
  });
  await watch(opened.page, 'r', options);
  return opened;
}

test('after 1008 and after close nothing is opened again, and 1013 waits longer', async () => {
  for (const [codes, options, opened, last, waits] of [
    [[1008], undefined, 1, 'closed', []],
    [[1001, 1008], undefined, 2, 'closed', [1]],
    [[1006], { reconnect: false }, 1, 'closed', []],
    [[1013], undefined, 2, 'connecting', [10]],
    [[1013, 1001], undefined, 3, 'connecting', [10, 1]],
  ]) {
    const { page: tab, context } = await openScriptedPage(codes, options);
    try {
      await tab.waitForFunction((opened) => window.opened >= opened, opened);
      await waitForEvents(tab, 'close', codes.length);
      // Time enough for one more, which must not come.
      await tab.waitForTimeout(100);
      const found = await tab.evaluate(() => [window.opened, window.room.state, window.waits]);
      assert.deepEqual(found, [opened, last, waits], String(codes));
    } finally {
      await context.close();
    }
  }
  const { page: tab, context } = await open(page.url, hasten);
  try {
    await watch(tab, 'closed');
    await waitForEvents(tab, 'open');
    await tab.evaluate(() => window.room.close());
    await waitForEvents(tab, 'close');
    await tab.waitForTimeout(100);
    assert.deepEqual(await tab.evaluate(() => [window.room.state, window.waits]), ['closed', []]);
  } finally {
    await context.close();
  }
});

test('a server that stops says so, and the page waits for it', async () => {
  const own = await startSvc();
  let stopped = false;
  const owner = await own.owner('acme');
  const { id } = await owner('POST', '', { name: 'House' });
  await owner('POST', `/${id}/backend`, { ddl, realtime: true });
  const { url } = await owner('POST', `/${id}/frontends`, { type: 'html', content: blank });
  const { page: tab, context } = await open(url, hasten);
  try {
    await watch(tab, 'a');
    await waitForEvents(tab, 'open');
    await own.stop();
    stopped = true;
    await waitForEvents(tab, 'close');
    await waitForEvents(tab, 'error');
    const events = (await seenEvents(tab)).filter(([name]) => name === 'close' || name === 'error');
    assert.deepEqual(events, [['close', 1001], ['error', 'unreachable']]);
    assert.equal(await roomState(tab), 'connecting');
  } finally {
    await context.close();
    if (!stopped) await own.stop();
  }
});

test('a tab in the background keeps its room', async () => {
  const [one, two] = [await open(page.url), await open(page.url)];
  try {
    await watch(one.page, 'background');
    await waitForEvents(one.page, 'open');
    const front = await one.context.newPage();
    await front.bringToFront();
    await watch(two.page, 'background');
    await waitForEvents(two.page, 'open');
    await two.page.evaluate(() => window.room.send('hello', 1));
    await waitForEvents(one.page, 'message');
  } finally {
    await Promise.all([one, two].map(({ context }) => context.close()));
  }
});
