// Every screen: what it is called, that everybody can use it, and how little it asks of the server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { inspect } from '../lib/inspect.mjs';
import { shoot } from '../lib/browser.mjs';
import { button, field, link, makeShop, startConsole, table, textbox, toggle } from '../lib/console.mjs';

let service, shop, bare, screens;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
  bare = await service.ask('POST', '/projects', { name: 'Bare' });
  const draft = await service.ask('POST', `${shop.at}/frontends/${shop.page.slug}/revisions`, {
    base_revision_id: (await service.ask('GET', `${shop.at}/frontends/${shop.page.slug}/revisions`)).active_revision_id,
    content: '# Harbour\n\nOpen from ten.\n',
    message: 'Winter',
  });
  await service.ask('POST', `${shop.at}/payments/catalog`, { product_name: 'Handbook', label: 'PDF', amount: 900, currency: 'eur', key: 'handbook' });
  const [P, E, W] = [shop.path, `/p/${bare.id}`, '/w/acme'];
  const page = `${P}/pages/${shop.page.slug}`;
  // Address, heading, and what a test finds there by name.
  screens = [
    ['/', 'Projects', (at) => [link(at, 'Web shop'), link(at, 'New project'), link(at, 'New workspace')]],
    ['/new', 'New project', (at) => [field(at, 'Name'), field(at, 'Description'), field(at, 'Workspace'), field(at, 'Lifetime'), ...['Empty', 'Page', 'Guest book'].map((name) => at.getByRole('radio', { name, exact: true })), button(at, 'Create')]],
    ['/w/new', 'New workspace', (at) => [field(at, 'Display name'), field(at, 'Slug'), button(at, 'Create')]],
    [P, 'Web shop', (at) => [...['Database', 'History', 'Sockets', 'Rooms'].map((name) => at.getByRole('meter', { name, exact: true })), button(at, 'Copy prompt')]],
    [`${P}/pages`, 'Pages', (at) => [table(at, 'Pages'), link(at, 'New page'), button(at, 'Claim a share'), field(at, 'Share id'), field(at, 'Delete token'), button(at, 'Claim')]],
    [`${P}/pages?new`, 'Pages', (at) => [field(at, 'Type'), field(at, 'Content'), field(at, 'Slug'), field(at, 'Title'), button(at, 'Publish')]],
    [page, 'Harbour', (at) => [...['Source', 'Revisions', 'Releases'].map((name) => at.getByRole('tab', { name, exact: true })), textbox(at, 'Source'), field(at, 'Message'), button(at, 'Save draft'), button(at, 'Publish now'), button(at, 'Delete page')]],
    [`${page}/${draft.revision.revision_id}`, 'Revision', (at) => [at.getByTitle('Live', { exact: true }), at.getByTitle('This revision', { exact: true }), at.getByRole('region', { name: 'Difference', exact: true }), button(at, 'Promote')]],
    [`${P}/data`, 'Data', (at) => [table(at, 'Tables')]],
    [`${P}/data?table=notes`, 'notes', (at) => [table(at, 'Rows'), button(at, 'Next page'), button(at, 'Previous page'), field(at, 'Filter column'), field(at, 'Operator'), field(at, 'Value'), button(at, 'Apply filter'), toggle(at, 'Live'), button(at, 'Insert row'), button(at, 'Open row')]],
    [`${P}/data?table=svc_payments`, 'svc_payments', () => []],
    [`${P}/sql`, 'SQL', (at) => [textbox(at, 'SQL'), toggle(at, 'Read only'), button(at, 'Run')]],
    [`${P}/schema`, 'Schema', (at) => [table(at, 'Columns of notes'), table(at, 'Migrations'), textbox(at, 'Migration'), field(at, 'Note'), button(at, 'Try'), button(at, 'Apply'), button(at, 'Export'), button(at, 'Delete database')]],
    [`${P}/actions`, 'Actions', (at) => [table(at, 'Actions'), textbox(at, 'SQL'), field(at, 'Note'), button(at, 'Try'), button(at, 'Define')]],
    [`${P}/actions/latest`, 'latest', (at) => [textbox(at, 'SQL'), field(at, 'Call as'), field(at.getByRole('group', { name: 'Parameters', exact: true }), 'most'), button(at, 'Call')]],
    [`${P}/history`, 'History', (at) => [at.getByRole('slider', { name: 'Moment', exact: true }), table(at, 'Moments'), button(at, 'Restore')]],
    [`${P}/rooms`, 'Rooms', (at) => [toggle(at, 'Realtime'), table(at, 'Rooms'), field(at, 'Room'), field(at, 'Type'), field(at, 'Data'), button(at, 'Send')]],
    [`${P}/visitors`, 'Visitors', (at) => [table(at, 'Visitors')]],
    [`${P}/files`, 'Files', (at) => [table(at, 'Files')]],
    [`${P}/statistics`, 'Statistics', (at) => [field(at, 'Time'), table(at, 'Pages'), table(at, 'Actions')]],
    [`${P}/log`, 'Log', (at) => [field(at, 'Kind'), toggle(at, 'Follow'), table(at, 'Log')]],
    [`${P}/actions/unheard_of`, 'unheard_of', (at) => [textbox(at, 'SQL'), field(at, 'Note'), button(at, 'Try'), button(at, 'Define')]],
    [`${P}/payments`, 'Payments', (at) => [table(at, 'Prices'), table(at, 'Sessions'), ...['Product name', 'Label', 'Amount', 'Currency', 'Recurring', 'Key'].map((name) => field(at, name)), button(at, 'Add price'), button(at, 'Withdraw')]],
    [`${P}/agents`, 'Agents', (at) => [toggle(at, 'Tools for agents'), table(at, 'Tools'), button(at, 'Make key')]],
    [`${P}/domains`, 'Domains', (at) => [field(at, 'Host name'), button(at, 'Add domain')]],
    [`${P}/settings`, 'Settings', (at) => [field(at, 'Name'), field(at, 'Description'), field(at, 'Home'), button(at, 'Save'), button(at, 'Delete project')]],
    [`${W}/members`, 'Members', (at) => [table(at, 'Members'), field(at, 'User id'), field(at, 'Role'), button(at, 'Add member')]],
    [`${W}/keys`, 'Keys', (at) => [table(at, 'Keys'), field(at, 'Role'), field(at, 'Ends'), field(at, 'Note'), button(at, 'Make key')]],
    [`${W}/audit`, 'Audit', (at) => [table(at, 'Audit')]],
    [`${W}/plan`, 'Plan', (at) => [button(at, 'Buy pro'), button(at, 'Manage subscription')]],
    [`${W}/settings`, 'Settings', (at) => [field(at, 'Display name'), button(at, 'Save'), button(at, 'Delete workspace')]],
    ...['', '/pages', '/data', '/sql', '/actions', '/history', '/rooms', '/agents', '/visitors', '/files', '/payments'].map((part) => [E + part, part ? undefined : 'Bare', () => []]),
    [`${E}/schema`, 'Schema', (at) => [textbox(at, 'Migration'), button(at, 'Create database')]],
  ];
});
after(() => service?.stop());

for (const width of [1280, 360]) {
  for (const scheme of ['light', 'dark']) {
    test(`all screens at ${width} px, ${scheme}`, async () => {
      const { page, visit, close, requests } = await service.open({ width, scheme });
      const wrong = [];
      for (const [path, heading, names] of screens) {
        await visit(path);
        const headings = await page.locator('h1').allTextContents();
        if (headings.length !== 1 || (heading && headings[0] !== heading)) wrong.push(`${path}: headings ${headings}`);
        if (!(await page.title()).startsWith(headings[0])) wrong.push(`${path}: title ${await page.title()}`);
        for (const named of names(page.locator('main'))) {
          const number = await named.count();
          if (number !== 1) wrong.push(`${path}: ${named} is there ${number} times`);
        }
        if (requests.length > 3) wrong.push(`${path}: ${requests.join(', ')}`);
        wrong.push(...(await inspect(page)).map((fault) => `${path}: ${fault}`));
      }
      await page.emulateMedia({ forcedColors: 'active' });
      await visit(shop.path);
      if (process.env.SHOTS) await shoot(page, `console-${width}-${scheme}-forced`);
      assert.deepEqual(wrong, []);
      await close();
    });
  }
}

test('navigations lead everywhere, and the heading takes the focus', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/data`);
  const names = await page.getByRole('navigation', { name: 'Project', exact: true }).getByRole('link').allTextContents();
  for (const name of names.filter((one) => !one.startsWith('Workspace'))) {
    await link(page.getByRole('navigation', { name: 'Project', exact: true }), name).click();
    await page.waitForFunction(() => document.activeElement?.localName === 'h1' && document.querySelector('main').getAttribute('aria-busy') === 'false');
    assert.equal(await link(page.getByRole('navigation', { name: 'Project', exact: true }), name).getAttribute('aria-current'), 'page');
  }
  await page.getByRole('navigation', { name: 'Project', exact: true }).getByRole('link', { name: /^Workspace/ }).click();
  await page.getByRole('navigation', { name: 'Workspace', exact: true }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
  await close();
});

test('the keyboard leads anywhere by Go to', async () => {
  const { page, visit, close } = await service.open();
  await visit(shop.path);
  await page.keyboard.press('Control+k');
  const place = page.getByRole('combobox', { name: 'Go to', exact: true });
  await place.waitFor();
  await page.keyboard.type('notes');
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'notes' }).waitFor();
  await page.keyboard.press('Control+k');
  await place.waitFor();
  await page.keyboard.press('Escape');
  await place.waitFor({ state: 'detached' });
  await close();
});

test('a phone finds navigations behind buttons of their names', async () => {
  const { page, visit, close } = await service.open({ width: 360 });
  await visit(shop.path);
  const navigation = page.getByRole('navigation', { name: 'Project', exact: true });
  assert.equal(await navigation.count(), 0);
  await button(page, 'Project').click();
  await link(navigation, 'Data').click();
  await page.getByRole('heading', { level: 1, name: 'Data' }).waitFor();
  assert.equal(await navigation.count(), 0);
  await button(page, 'Account').click();
  await button(page.getByRole('navigation', { name: 'Account', exact: true }), 'Sign out').waitFor();
  await close();
});
