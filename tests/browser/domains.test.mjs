// A project at a domain of its owner, in a real browser: visitors sign in, call actions, listen and meet there, by cookies of that host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startDns } from './lib/dns.mjs';
import { signInAtIssuer, startIssuer } from './lib/issuer.mjs';
import { startSvc } from './lib/svc.mjs';

const name = 'www.shop.com';
const ddl = 'CREATE TABLE entries (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, words TEXT NOT NULL);';
const actions = [
  { name: 'sign', sql: 'INSERT INTO entries (user_id, words) VALUES (:svc_user_id, :words) RETURNING id' },
  { name: 'mine', sql: 'SELECT words FROM entries WHERE user_id = :svc_user_id ORDER BY id' },
];
const content =
  '<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><h1>Open</h1>' +
  '<button onclick="svc.auth.login()">Sign in</button></html>';
const soon = '<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><h1>Soon</h1></html>';

const stops = [];
let svc, browser, ask, project, own, origin, shop;

before(async () => {
  const [dns, issuer] = await Promise.all([startDns(), startIssuer()]);
  stops.push(dns.stop, issuer.stop);
  const tables = ['[domains]', `resolver = "${dns.address}"`, ...issuer.tables];
  svc = await startSvc({ tables });
  stops.push(svc.stop);
  issuer.serve(svc);
  browser = await startBrowser({ hosts: [name] });
  stops.push(() => browser.close());
  ask = await svc.owner('acme');
  project = (await ask('POST', '', { name: 'House' })).id;
  await ask('POST', `/${project}/backend`, { ddl, realtime: true });
  await ask('PUT', `/${project}/backend/actions`, { actions });
  own = (await ask('POST', `/${project}/frontends`, { type: 'html', content, requested_slug: 'shop' })).url;
  const { records } = await ask('POST', `/${project}/domains`, { name });
  dns.add(records[0]);
  const { state } = await ask('POST', `/${project}/domains/${name}/verify`, {});
  assert.equal(state, 'active');
  origin = `http://${name}:${new URL(own).port}`;
  shop = `${origin}/shop`;
});

after(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** Opens the page on the domain, in a browser of its own. */
async function open() {
  const opened = await openPage(browser, origin);
  await opened.page.goto(shop);
  await opened.page.getByRole('heading', { name: 'Open' }).waitFor();
  return opened;
}

/** Joins a room in a page, and writes down there what arrives. */
const join = (tab) =>
  tab.evaluate(
    () =>
      new Promise((joined) => {
        window.heard = [];
        window.room = svc.ws.room('lobby');
        window.room.on('message', ({ data }) => window.heard.push(data));
        window.room.on('open', joined);
      }),
  );

/** Listens to the visitor's own entries in a page, and writes down there what it is told. */
const listen = (tab) =>
  tab.evaluate(() => {
    window.seen = [];
    const show = ({ rows }) => window.seen.push(rows.map(({ words }) => words).join());
    svc.db.live('mine', {}, show, { onError: (error) => window.seen.push(error.code) });
  });

const waitFor = (tab, list, text) => tab.waitForFunction(([list, text]) => window[list].includes(text), [list, text]);

test('a page on a domain does all that it does on its own origin', async () => {
  const [ada, bob] = [await open(), await open()];
  try {
    assert.deepEqual([...ada.faults, ...bob.faults], []);
    await ada.page.getByRole('button', { name: 'Sign in' }).click();
    await signInAtIssuer(ada.page);
    await ada.page.waitForURL(shop);
    // The pages of the provider are another origin's, and their faults are theirs.
    ada.faults.splice(0, ada.faults.length, ...ada.faults.filter((fault) => fault.includes(origin)));
    const user = await ada.page.evaluate(() => svc.auth.user());
    assert.deepEqual([user.name, user.email], ['Ada', 'ada@example.com']);

    await listen(ada.page);
    await waitFor(ada.page, 'seen', '');
    await ada.page.evaluate(() => svc.db.op('sign', { words: 'I was here' }));
    await waitFor(ada.page, 'seen', 'I was here');
    await Promise.all([join(ada.page), join(bob.page)]);
    await ada.page.evaluate(() => window.room.send('say', 'hello'));
    await waitFor(bob.page, 'heard', 'hello');

    const ours = (await ada.context.cookies()).filter((cookie) => cookie.name.includes('svc_session'));
    assert.deepEqual(ours.map(({ domain, httpOnly }) => [domain, httpOnly]), [[name, true]]);
    assert.equal(await ada.page.evaluate(() => document.cookie), '');
    assert.deepEqual(await bob.context.cookies(), []);
    assert.equal(await bob.page.evaluate(() => svc.auth.user()), null);
    // The project's own origin knows nobody.
    const tab = await ada.context.newPage();
    await tab.goto(own);
    assert.equal(await tab.evaluate(() => svc.auth.user()), null);
    assert.deepEqual([...ada.faults, ...bob.faults], []);
  } finally {
    await Promise.all([ada, bob].map(({ context }) => context.close()));
  }
});

test('a draft is looked at beside the page on the domain', async () => {
  const path = `/${project}/frontends/shop/revisions`;
  const { active_revision_id: live } = await ask('GET', path);
  const draft = await ask('POST', path, { base_revision_id: live, content: soon });
  const { page, context, faults } = await openPage(browser, new URL(draft.preview_url).origin);
  try {
    await page.goto(draft.preview_url);
    await page.getByRole('heading', { name: 'Soon' }).waitFor();
    assert.deepEqual(faults, []);
    assert.deepEqual(await context.cookies(), []);
  } finally {
    await context.close();
  }
  const { context: visitor } = await open();
  await visitor.close();
});
