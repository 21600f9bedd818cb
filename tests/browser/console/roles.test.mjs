// What a role may not do is shown, cannot be pressed, and says who may.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, field, link, makeShop, startConsole, table, textbox, toggle } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
  await service.ask('POST', `${shop.at}/payments/catalog`, { product_name: 'Handbook', label: 'PDF', amount: 900, currency: 'eur' });
});
after(() => service?.stop());

const P = () => shop.path;
const editing = () => [
  [`${P()}/pages`, ['Claim a share', 'Claim'], ['Share id', 'Delete token']],
  [`${P()}/pages?new`, ['Publish'], ['Content', 'Slug', 'Title']],
  [`${P()}/pages/${shop.page.slug}`, ['Save draft', 'Publish now', 'Delete page'], ['Message']],
  [`${P()}/data?table=notes`, ['Insert row'], []],
  [`${P()}/schema`, ['Try', 'Apply', 'Delete database'], ['Note']],
  [`${P()}/actions`, ['Try', 'Define'], ['Note']],
  [`${P()}/actions/latest`, ['Try', 'Define', 'Call', 'Delete action'], []],
  [`${P()}/history`, ['Restore'], []],
  [`${P()}/rooms`, ['Send'], ['Room', 'Type', 'Data']],
  [`${P()}/payments`, ['Add price', 'Withdraw'], ['Product name', 'Label', 'Amount', 'Currency', 'Key']],
  [`${P()}/settings`, ['Save', 'Delete project'], ['Name', 'Description']],
];
const leading = [
  ['/w/acme/members', ['Add member'], ['User id']],
  ['/w/acme/keys', ['Make key'], ['Note']],
  ['/w/acme/settings', ['Save'], ['Display name']],
];
const owning = [
  ['/w/acme/plan', ['Buy pro', 'Manage subscription'], []],
  ['/w/acme/settings', ['Delete workspace'], []],
];

async function compare(role, places, may) {
  const { page, visit, close, requests } = await service.open({ role });
  for (const [path, buttons, fields] of places) {
    await visit(path);
    for (const name of buttons) {
      const found = button(page.locator('main'), name);
      const isOff = (await found.getAttribute('aria-disabled')) === 'true';
      const reason = await found.getAttribute('title');
      if (may) assert.ok(!/of the workspace may/.test(reason ?? ''), `${role} ${path} ${name}: ${reason}`);
      else assert.ok(isOff && /of the workspace may/.test(reason ?? ''), `${role} ${path} ${name}: ${reason}`);
    }
    for (const name of fields) assert.equal(await field(page.locator('main'), name).getAttribute('readonly') !== null, !may, `${role} ${path} ${name}`);
  }
  assert.ok(requests.every((one) => one.startsWith('GET') || one.endsWith('/query')));
  await close();
}

test('a viewer reads', () => compare('viewer', [...editing(), ...leading, ...owning], false));
test('an editor changes projects', async () => {
  await compare('editor', editing(), true);
  await compare('editor', [...leading, ...owning], false);
});
test('an admin changes members and keys, too', async () => {
  await compare('admin', [...editing(), ...leading], true);
  await compare('admin', owning, false);
});
test('an owner may do all', () => compare('owner', [...editing(), ...leading, ...owning], true));

test('a viewer opens rows, runs what reads, and is refused nothing that was offered', async () => {
  const { page, visit, close } = await service.open({ role: 'viewer' });
  await visit(`${P()}/data?table=notes`);
  await button(page, 'Open row').first().click();
  const box = page.getByRole('dialog', { name: 'Row', exact: true });
  await field(box, 'text').waitFor();
  assert.notEqual(await field(box, 'text').getAttribute('readonly'), null);
  assert.equal(await button(box, 'Delete row').getAttribute('aria-disabled'), 'true');
  assert.equal(await button(box, 'Save row').getAttribute('aria-disabled'), 'true');
  await button(box, 'Cancel').click();
  await visit(`${P()}/sql`);
  await textbox(page, 'SQL').fill('SELECT count(*) AS n FROM notes');
  await button(page, 'Run').click();
  await table(page, 'Result').waitFor();
  assert.equal(await toggle(page, 'Read only').getAttribute('aria-disabled'), 'true');
  await visit('/w/acme/audit');
  await page.getByText('An admin of the workspace may see this.').waitFor();
  await visit(`${P()}/rooms`);
  assert.equal(await toggle(page, 'Realtime').getAttribute('aria-disabled'), 'true');
  await close();
});

test('a key makes no workspace, and is told why', async () => {
  const { page, close } = await service.open();
  await link(page, 'New workspace').click();
  await page.getByText('You are signed in with a key').waitFor();
  assert.equal(await button(page, 'Create').getAttribute('aria-disabled'), 'true');
  await close();
});
