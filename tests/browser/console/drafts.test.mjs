// What is typed stays: through reloads, errors, and the way back.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, dialog, field, makeShop, settle, startConsole, textbox } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
});
after(() => service?.stop());

test('editors keep their text through a reload and the way back', async () => {
  const { page, visit, close } = await service.open();
  const fields = [
    [`${shop.path}/pages/${shop.page.slug}`, 'Source', '# Harbour\n\nOpen from ten.'],
    [`${shop.path}/sql`, 'SQL', 'SELECT 1,\n  2'],
    [`${shop.path}/schema`, 'Migration', 'CREATE TABLE more (id INTEGER PRIMARY KEY)'],
    [`${shop.path}/actions/latest`, 'SQL', 'SELECT id FROM notes LIMIT :most'],
  ];
  const shown = (name) => textbox(page, name).evaluate((box) => [...box.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\n'));
  for (const [path, name, typed] of fields) {
    await visit(path);
    await textbox(page, name).fill(typed);
    await page.reload();
    await settle(page);
    assert.equal(await shown(name), typed);
    await page.getByRole('navigation', { name: 'Project', exact: true }).getByRole('link', { name: 'History' }).click();
    await page.getByRole('heading', { level: 1, name: 'History' }).waitFor();
    await page.goBack();
    await settle(page);
    assert.equal(await shown(name), typed);
  }
  await close();
});

test('forms keep their fields, and secrets are not kept', async () => {
  const { page, visit, close } = await service.open();
  const forms = [
    ['/new', { Name: 'A new one', Description: 'With words' }],
    [`${shop.path}/pages?new`, { Content: '# Typed\n', Slug: 'typed', Title: 'Typed' }],
    [`${shop.path}/payments`, { 'Product name': 'Book', Label: 'Paper', Amount: '1200' }],
    [`${shop.path}/settings`, { Name: 'Other', Description: 'Changed' }],
    ['/w/acme/keys', { Note: 'for the press' }],
  ];
  for (const [path, values] of forms) {
    await visit(path);
    for (const [label, value] of Object.entries(values)) await field(page, label).fill(value);
    await page.reload();
    await settle(page);
    for (const [label, value] of Object.entries(values)) assert.equal(await field(page, label).inputValue(), value);
  }
  await visit(`${shop.path}/pages`);
  await field(page, 'Delete token').fill('svcd_secret');
  await page.reload();
  await settle(page);
  assert.equal(await field(page, 'Delete token').inputValue(), '');
  await close();
});

test('a row keeps what was typed until it is saved or given up', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/data?table=notes`);
  await button(page, 'Open row').first().click();
  await field(dialog(page, 'Row'), 'text').fill('typed and left');
  await page.keyboard.press('Escape');
  await page.reload();
  await settle(page);
  await button(page, 'Open row').first().click();
  await field(dialog(page, 'Row'), 'text').waitFor();
  assert.equal(await field(dialog(page, 'Row'), 'text').inputValue(), 'typed and left');
  await button(dialog(page, 'Row'), 'Cancel').click();
  await button(page, 'Open row').first().click();
  await field(dialog(page, 'Row'), 'text').waitFor();
  assert.equal(await field(dialog(page, 'Row'), 'text').inputValue(), 'First');
  await close();
});

test('an error is told where it belongs, and leaves the text', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('400', '403');
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill('SELECT nothing FROM notes');
  await button(page, 'Run').click();
  await page.locator('[role="alert"][data-code="statement_refused"]').waitFor();
  await page.locator('.cm-fault').waitFor();
  await textbox(page, 'SQL').fill("UPDATE notes SET text = 'changed'");
  await button(page, 'Run').click();
  await page.locator('[role="alert"][data-code="forbidden"]').waitFor();
  await button(page, 'Allow writes').click();
  await page.getByText('1 row changed').waitFor();
  assert.equal(await page.getByRole('switch', { name: 'Read only' }).getAttribute('aria-checked'), 'false');
  await visit(`${shop.path}/schema`);
  await textbox(page, 'Migration').fill('DROP TABLE notes');
  await button(page, 'Try').click();
  await page.locator('[role="alert"][data-code="ddl_refused"]').waitFor();
  assert.equal(await button(page, 'Apply').getAttribute('aria-disabled'), 'true');
  await close();
});

test('a server that is away is told, and what was typed is sent once it is back', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('ERR_', 'Failed to load');
  await visit('/new');
  await field(page, 'Name').fill('Sent twice');
  let lost = 0;
  await page.route('**/api/v1/projects', async (route) => {
    if (route.request().method() !== 'POST' || lost++) return route.continue();
    // It arrives, and its answer does not. Node knows no names below localhost, so that the server is asked by its own.
    const { authorization, 'idempotency-key': key, 'content-type': type } = route.request().headers();
    const body = route.request().postData();
    await fetch(`${service.svc.url}/api/v1/projects`, { method: 'POST', headers: { authorization, 'idempotency-key': key, 'content-type': type }, body });
    return route.abort();
  });
  await button(page, 'Create').click();
  await page.locator('[role="alert"][data-code="unreachable"]').waitFor();
  await button(page, 'Create').click();
  await page.getByRole('heading', { level: 1, name: 'Sent twice' }).waitFor();
  const { projects } = await service.ask('GET', '/projects');
  assert.equal(projects.filter((project) => project.name === 'Sent twice').length, 1);
  await close();
});
