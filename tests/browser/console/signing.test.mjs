// Signing in and out: keys, links, other tabs, and where the credential is meanwhile.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, field, makeShop, said, settle, startConsole, textbox } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
});
after(() => service?.stop());

const atSignIn = (page) => page.getByRole('heading', { level: 1, name: 'Sign in', exact: true }).waitFor();

test('a key that was cut is told from one that nobody knows', async () => {
  const { page, visit, close, allow, requests } = await service.open({ key: null });
  allow('401');
  await visit('/login');
  const key = service.keys.owner;
  for (const wrong of ['hello', key.slice(0, -1), `${key}x`, key.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x'))]) {
    await field(page, 'Key').fill(wrong);
    await button(page, 'Sign in with key').click();
    await page.locator('.wrong').waitFor();
  }
  assert.deepEqual(requests, []);
  // One that was revoked has the right form.
  const { key_id } = (await service.ask('GET', '/workspaces/acme/keys')).keys.at(-1);
  const spare = await service.makeKey('viewer');
  await service.ask('DELETE', `/workspaces/acme/keys/${spare.split('_')[1]}`);
  assert.ok(key_id);
  await field(page, 'Key').fill(spare);
  await button(page, 'Sign in with key').click();
  await page.locator('[role="alert"][data-code="unauthorized"]').waitFor();
  await close();
});

test('a deep link leads to the sign-in and back', async () => {
  const { page, visit, close } = await service.open({ key: null });
  await visit(`${shop.path}/data?table=notes`);
  await atSignIn(page);
  assert.equal(new URL(page.url()).pathname, '/login');
  await field(page, 'Key').fill(service.keys.viewer);
  await button(page, 'Sign in with key').click();
  await page.getByRole('heading', { level: 1, name: 'notes', exact: true }).waitFor();
  assert.equal(new URL(page.url()).search, '?table=notes');
  await close();
});

test('a key is kept in its tab, or in memory alone', async () => {
  const { page, visit, close } = await service.open({ key: null });
  await visit('/login');
  await page.getByRole('checkbox', { name: 'Keep in this tab' }).uncheck();
  await field(page, 'Key').fill(service.keys.editor);
  await button(page, 'Sign in with key').click();
  await page.getByRole('heading', { level: 1, name: 'Projects', exact: true }).waitFor();
  const everything = () => page.evaluate(() => JSON.stringify([Object.entries(sessionStorage), Object.entries(localStorage), document.cookie, location.href, history.state]));
  assert.ok(!(await everything()).includes(service.keys.editor));
  await page.reload();
  await atSignIn(page);
  await close();
});

test('other tabs ask for the session, and leave together', async () => {
  const { page, context, close } = await service.open();
  const other = await context.newPage();
  await other.goto(`${service.origin}${shop.path}`);
  await settle(other);
  await other.getByRole('heading', { level: 1, name: 'Web shop' }).waitFor();
  await button(page, 'Sign out').click();
  await atSignIn(page);
  await atSignIn(other);
  await other.goto(service.origin);
  await atSignIn(other);
  assert.equal(await page.evaluate(() => Object.keys(sessionStorage).filter((name) => name !== 'svc-config').length), 0);
  await close();
});

test('the credential is in its place alone after a walk', async () => {
  const key = service.keys.owner;
  const { page, visit, close } = await service.open();
  const seen = [];
  page.on('request', (request) => {
    seen.push(request.url(), request.postData() ?? '');
    const headers = { ...request.headers() };
    delete headers.authorization;
    seen.push(JSON.stringify(headers));
  });
  for (const part of ['', '/pages', '/data', '/sql', '/schema', '/actions', '/history', '/rooms', '/visitors', '/payments', '/agents', '/settings']) await visit(shop.path + part);
  for (const part of ['members', 'keys', 'audit', 'plan', 'settings']) await visit(`/w/acme/${part}`);
  const { kept, rest } = await page.evaluate(() => {
    const { 'svc-session': kept, ...others } = { ...sessionStorage };
    return { kept, rest: JSON.stringify([others, { ...localStorage }, document.cookie, document.title, document.documentElement.outerHTML, location.href, history.state]) };
  });
  assert.ok(kept.includes(key));
  assert.ok(![rest, ...seen].some((text) => text.includes(key)));
  await close();
});

test('an ended session asks again, and loses nothing that was typed', async () => {
  const key = await service.makeKey('owner');
  const { page, visit, close, allow } = await service.open({ key });
  allow('401');
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill('SELECT 42 AS answer');
  await service.ask('DELETE', `/workspaces/acme/keys/${key.split('_')[1]}`);
  await button(page, 'Run').click();
  await atSignIn(page);
  await page.getByText('what you typed is still here').waitFor();
  await field(page, 'Key').fill(service.keys.owner);
  await button(page, 'Sign in with key').click();
  await page.getByRole('heading', { level: 1, name: 'SQL' }).waitFor();
  await settle(page);
  assert.equal(await textbox(page, 'SQL').textContent(), 'SELECT 42 AS answer');
  await close();
});

test('a link signs in once', async () => {
  const { url } = await service.svc.operate('console', 'acme');
  assert.match(new URL(url).hash, /^#[0-9A-Za-z]{43}$/);
  const address = service.origin + new URL(url).pathname + new URL(url).hash;
  const { page, close, allow } = await service.open({ key: null });
  allow('401');
  await page.goto(address);
  await button(page, 'Continue').click();
  await page.getByRole('heading', { level: 1, name: 'Projects', exact: true }).waitFor();
  assert.match(await said(page).textContent(), /workspace acme as owner/);
  assert.ok(!(await page.evaluate(() => location.href + JSON.stringify({ ...sessionStorage }))).includes(address.split('#')[1]));
  await button(page, 'Sign out').click();
  await atSignIn(page);
  // The key of the link is revoked with it.
  const { keys } = await service.ask('GET', '/workspaces/acme/keys');
  assert.ok(!keys.some((one) => one.note === 'console'));
  await page.goto('about:blank');
  await page.goto(address);
  await button(page, 'Continue').click();
  await page.locator('[role="alert"][data-code="unauthorized"]').waitFor();
  await close();
});
