// Visitors who sign in, in a real browser: the guide's guest book, with the provider of the server itself and with a certified one.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { signInAtIssuer, startIssuer } from './lib/issuer.mjs';
import { startSvc } from './lib/svc.mjs';

const ddl = 'CREATE TABLE entries (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, words TEXT NOT NULL);';
const actions = [
  { name: 'sign', sql: 'INSERT INTO entries (user_id, words) VALUES (:svc_user_id, :words) RETURNING id' },
  { name: 'mine', sql: 'SELECT words FROM entries WHERE user_id = :svc_user_id ORDER BY id' },
];

let browser, content;
const stops = [];

before(async () => {
  browser = await startBrowser();
  const guide = await readFile(new URL('../../docs/sign-in.md', import.meta.url), 'utf8');
  content = /<<'HTML'\n([^]*?)\nHTML\n/.exec(guide)[1];
});

after(async () => {
  await browser?.close();
  for (const stop of stops) await stop();
});

/** A server with the guest book, and a sibling of it. */
async function startGuestBook(options) {
  const svc = await startSvc(options);
  stops.push(() => svc.stop());
  const ask = await svc.owner('acme');
  const project = (await ask('POST', '', { name: 'House' })).id;
  await ask('POST', `/${project}/backend`, { ddl });
  await ask('PUT', `/${project}/backend/actions`, { actions });
  const page = (slug) => ask('POST', `/${project}/frontends`, { type: 'html', content, requested_slug: slug });
  return { svc, book: (await page('book')).url, sibling: (await page('sibling')).url };
}

/** Signs the book, signs out, and looks at what is left, as whoever is signed in on the page. */
async function signBookAndSignOut(page, { book, sibling }, name) {
  await page.getByText(`Hello ${name}`).waitFor();
  await page.getByLabel('Your words').fill('I was here');
  await page.getByRole('button', { name: 'Sign', exact: true }).click();
  await page.getByRole('listitem').filter({ hasText: 'I was here' }).waitFor();
  const user = await page.evaluate(() => svc.auth.user());
  assert.match(user.id, /^usr_[A-Za-z0-9]{22}$/);
  assert.equal(user.name, name);
  assert.match(user.expiresAt, /Z$/);
  assert.equal(await page.evaluate(() => document.cookie), '', 'no script sees a session');
  assert.doesNotMatch(page.url(), /code=|state=|ticket=/);

  const tab = await page.context().newPage();
  await tab.goto(sibling);
  await tab.getByRole('button', { name: 'Sign in' }).waitFor();
  assert.equal(await tab.evaluate(() => svc.auth.user()), null);
  // Another tab of the page itself learns of the end.
  await tab.goto(book);
  await tab.getByText(`Hello ${name}`).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await tab.getByRole('button', { name: 'Sign in' }).waitFor();
  const refused = await page.evaluate(() => svc.db.op('mine').catch((error) => [error.code, error.status]));
  assert.deepEqual(refused, ['identity_required', 401]);
}

test('the guest book of the guide, with the provider of the server itself', async () => {
  const place = await startGuestBook({ options: ['--dev'] });
  const { page } = await openPage(browser, new URL(place.book).origin);
  await page.goto(`${place.book}?page=1#end`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('no real sign-in').waitFor();
  await page.getByLabel('Name').fill('Ada');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${place.book}?page=1#end`);
  await signBookAndSignOut(page, place, 'Ada');
  // Who says no comes back, and is told so.
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.waitForURL(`${place.book}?page=1&auth_error=access_denied#end`);
  // Where the page is a stranger's, the sign-in leads to its own origin.
  await page.goto(`${place.svc.url}/book/auth/login`);
  await page.getByLabel('Name').fill('Ada');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(place.book);
  await page.getByText('Hello Ada').waitFor();
});

test('a certified OpenID Connect provider', async () => {
  const issuer = await startIssuer();
  stops.push(() => issuer.stop());
  const place = await startGuestBook({ tables: issuer.tables });
  issuer.serve(place.svc);
  const { page } = await openPage(browser, new URL(place.book).origin);
  await page.goto(place.book);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await signInAtIssuer(page);
  await page.waitForURL(place.book);
  const user = await page.evaluate(() => svc.auth.user());
  assert.equal(user.email, 'ada@example.com');
  assert.equal(user.locale, 'de');
  assert.equal(user.provider, 'acme');
  await signBookAndSignOut(page, place, 'Ada');
});

test('who is signed in is asked again while another server takes over', async () => {
  const place = await startGuestBook();
  const { page } = await openPage(browser, new URL(place.book).origin);
  const user = { id: 'usr_1', name: 'Ada', expires_at: '2026-12-01T00:00:00.000Z' };
  let asked = 0;
  await page.route('**/auth/status', (route) => {
    asked += 1;
    if (asked > 2) return route.fulfill({ json: { user } });
    return route.fulfill({ status: 503, headers: { 'retry-after': '1' }, json: { code: 'capacity_reached' } });
  });
  await page.goto(place.book);
  const found = await page.evaluate(() => svc.auth.user());
  assert.equal(found.name, 'Ada');
  assert.equal(asked, 3);
});
