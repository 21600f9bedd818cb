// Rooms and live queries in a real browser, through a node that has nothing, and after everything has moved there.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const skip = !process.env.SVC_CLUSTER && 'SVC_CLUSTER is not set: one machine has nowhere to move to';
const actions = [
  { name: 'total', sql: 'SELECT count(*) AS n FROM votes' },
  { name: 'vote', sql: 'INSERT INTO votes (choice) VALUES (:choice)' },
];
const content = '<!doctype html><html lang="en"><title>Hall</title><link rel="icon" href="data:,"><p>Hall</p></html>';

let svc, browser, page;

before(async () => {
  if (skip) return;
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const ask = await svc.owner('acme');
  const { id } = await ask('POST', '', { name: 'House' });
  await ask('POST', `/${id}/backend`, { ddl: 'CREATE TABLE votes (id INTEGER PRIMARY KEY, choice TEXT)', realtime: true });
  await ask('PUT', `/${id}/backend/actions`, { actions });
  page = await ask('POST', `/${id}/frontends`, { type: 'html', content, requested_slug: 'hall' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Joins the room of a page and watches the votes, and writes down there what is told. */
const watch = (tab) =>
  tab.evaluate(() => {
    window.heard = [];
    window.room = svc.ws.room('hall');
    for (const name of ['open', 'message', 'close']) {
      window.room.on(name, (event) => window.heard.push([name, event.code ?? event.data ?? event.seq]));
    }
    svc.db.live('total', {}, ({ rows }) => (window.total = rows[0].n));
  });

/** Waits until something was told for so many times; answers what was told each time. */
async function heard(tab, name, count = 1) {
  const wait = ([name, count]) => window.heard.filter(([event]) => event === name).length >= count;
  await tab.waitForFunction(wait, [name, count], { timeout: 90_000 });
  const all = await tab.evaluate(() => window.heard);
  return all.filter(([event]) => event === name).map(([, what]) => what);
}

/** Votes in a page, and waits until all pages show it. */
async function vote(tabs) {
  const n = await tabs[0].evaluate(async () => {
    await svc.db.op('vote', { choice: 'tea' });
    return (await svc.db.op('total')).rows[0].n;
  });
  for (const tab of tabs) await tab.waitForFunction((n) => window.total === n, n, { timeout: 90_000 });
}

test('pages go on when everything has moved to their node', { skip }, async () => {
  const { page: one } = await openPage(browser, new URL(page.url).origin);
  const { page: two } = await openPage(browser, new URL(page.url).origin);
  const tabs = [one, two];
  for (const tab of tabs) {
    await tab.goto(page.url);
    await watch(tab);
    assert.deepEqual(await heard(tab, 'open'), [0]);
  }
  assert.equal(await one.evaluate(() => window.room.send('say', 'before')), true);
  assert.deepEqual(await heard(two, 'message'), ['before']);
  await vote(tabs);

  const { had_control: had } = await svc.operate('promote');
  assert.equal(had, false, 'the node has had nothing');
  for (const tab of tabs) {
    assert.deepEqual(await heard(tab, 'close'), [1012]);
    // The room says that it counts anew.
    assert.deepEqual(await heard(tab, 'open', 2), [0, 0]);
  }
  assert.equal(await two.evaluate(() => window.room.send('say', 'after')), true);
  assert.deepEqual(await heard(one, 'message'), ['after']);
  await vote(tabs);

  await one.reload();
  await watch(one);
  assert.deepEqual(await heard(one, 'open'), [1]);
  await vote(tabs);
  for (const tab of tabs) await tab.context().close();
});
