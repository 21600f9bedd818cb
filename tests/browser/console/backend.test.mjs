// What is behind the pages: statements, schema, actions, rooms, visitors, payments, agents, and the workspace around it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { button, dialog, field, link, makeShop, said, settle, startConsole, table, textbox, toggle } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
});
after(() => service?.stop());

test('binds are fields, and values keep their types', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill("SELECT :a AS a, :b AS b, typeof(:c) AS c, ':no' AS d -- :neither");
  const binds = page.getByRole('group', { name: 'Parameters', exact: true });
  assert.deepEqual(await binds.locator('label').allTextContents(), ['a', 'b', 'c']);
  await field(binds, 'a').fill('9223372036854775807');
  await field(binds, 'b').fill('007');
  await field(binds, 'Type of c').selectOption('NULL');
  await textbox(page, 'SQL').press('Control+Enter');
  const cells = table(page, 'Result').locator('td');
  await cells.first().waitFor();
  assert.deepEqual(await cells.evaluateAll((all) => all.map((cell) => [cell.dataset.type, cell.textContent])), [['integer', '9223372036854775807'], ['text', '007'], ['text', 'null'], ['text', ':no']]);
  await close();
});

test('a database is made, migrated with a broken action named, exported and deleted', async () => {
  const project = await service.ask('POST', '/projects', { name: 'Fresh' });
  const { page, visit, close } = await service.open();
  await visit(`/p/${project.id}/schema`);
  await textbox(page, 'Migration').fill('CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)');
  await button(page, 'Create database').click();
  await said(page).getByText('Made the database').waitFor();
  await table(page, 'Columns of things').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Export').click()]);
  assert.equal((await readFile(await download.path())).subarray(0, 15).toString(), 'SQLite format 3');
  await service.ask('PUT', `/projects/${project.id}/backend/actions`, { actions: [{ name: 'names', sql: 'SELECT name FROM things, other' }] }).catch(() => {});
  await button(page, 'Delete database').click();
  await button(dialog(page, 'Delete database'), 'Delete database').click();
  await button(page, 'Create database').waitFor();
  await visit(`/p/${project.id}/data`);
  await page.getByText('This project has no database yet').waitFor();
  await close();
});

test('an action is defined, called as somebody, brought back, and deleted', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('409');
  await visit(`${shop.path}/actions`);
  await field(page, 'Name').fill('whoami');
  await textbox(page, 'SQL').fill('SELECT :svc_user_id AS me, :svc_user_email AS mail, :n AS n');
  await field(page, 'Note').fill('Says who calls.');
  await button(page, 'Try').click();
  await page.getByText('It would work.').waitFor();
  await button(page, 'Define').click();
  await page.getByRole('heading', { level: 1, name: 'whoami' }).waitFor();
  await said(page).getByText('Defined whoami.').waitFor();
  await settle(page);
  await field(page, 'Call as').selectOption('A test id');
  await field(page, 'User id').fill('usr_ada');
  await field(page, 'E-mail').fill('ada@example.com');
  await field(page.getByRole('group', { name: 'Parameters', exact: true }), 'n').fill('9007199254740993');
  await button(page, 'Call').click();
  await table(page, 'Result').waitFor();
  assert.deepEqual(await table(page, 'Result').locator('td').allTextContents(), ['usr_ada', 'ada@example.com', '9007199254740993']);
  // Somebody else defines it meanwhile: the second is told, and keeps the text.
  await service.ask('PUT', `${shop.at}/backend/actions`, { actions: [{ name: 'whoami', sql: 'SELECT :svc_user_id AS me' }] });
  await textbox(page, 'SQL').fill('SELECT 1 AS mine, :svc_user_id AS me');
  await button(page, 'Define').click();
  await page.locator('[role="alert"][data-code="action_conflict"]').waitFor();
  assert.match(await textbox(page, 'SQL').textContent(), /AS mine/);
  await visit(`${shop.path}/actions/whoami`);
  await button(page, 'Show versions').click();
  await button(table(page, 'Versions').getByRole('row').filter({ hasText: 'Says who calls' }).last(), 'Bring back').click();
  await said(page).getByText('as version 3').waitFor();
  await button(page, 'Delete action').click();
  await button(dialog(page, 'Delete action'), 'Delete action').click();
  await page.getByRole('heading', { level: 1, name: 'Actions' }).waitFor();
  const { actions } = await service.ask('GET', `${shop.at}/backend/actions`);
  assert.ok(!actions.some((action) => action.name === 'whoami'));
  await close();
});

test('rooms are closed, opened, and spoken into', async () => {
  const { page, visit, close, requests } = await service.open();
  await visit(`${shop.path}/rooms`);
  await field(page, 'Room').fill('lobby');
  await field(page, 'Type').fill('notice');
  await field(page, 'Data').fill('{"x": 9007199254740993}');
  await button(page, 'Send').click();
  await said(page).getByText('Nobody is in lobby').waitFor();
  await field(page, 'Data').fill('just words');
  await button(page, 'Send').click();
  const before_ = requests.length;
  await page.waitForTimeout(6200);
  const polls = requests.length - before_;
  assert.ok(polls >= 2 && polls <= 4, `${polls} polls in six seconds`);
  await toggle(page, 'Realtime').click();
  await said(page).getByText('Rooms are closed').waitFor();
  await page.getByRole('heading', { name: 'Rooms are closed' }).waitFor();
  await toggle(page, 'Realtime').click();
  await field(page, 'Room').waitFor();
  await close();
});

test('without visitors the screen says how one comes', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/visitors`);
  await page.getByText('Nobody has signed in yet').waitFor();
  await close();
});

test('files of visitors are listed, taken and deleted', async () => {
  await service.ask('PUT', `${shop.at}/backend/actions`, { actions: [{ name: 'attach', sql: 'INSERT INTO notes (text) VALUES (:svc_file)', files: { anonymous: true } }] });
  const upload = await fetch(`${service.svc.url}/${shop.page.slug}/api/files/attach?name=${encodeURIComponent('<b>beans\u202e.txt')}`, { method: 'POST', body: 'beans' });
  assert.equal(upload.status, 201, await upload.clone().text());
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/files`);
  const row = table(page, 'Files').getByRole('row').filter({ hasText: 'beans' });
  await row.getByText('text/plain').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), button(row, 'Download file').click()]);
  assert.equal(await readFile(await download.path(), 'utf8'), 'beans');
  await button(row, 'Delete file').click();
  await button(dialog(page, 'Delete file'), 'Delete file').click();
  await said(page).getByText('Deleted the file').waitFor();
  await page.getByText('No file yet').waitFor();
  // Its action keeps its rules when another word of it is changed.
  await visit(`${shop.path}/actions/attach`);
  await field(page, 'Note').fill('Takes a file.');
  await button(page, 'Define').click();
  await said(page).getByText('Defined version 1').waitFor();
  const { actions } = await service.ask('GET', `${shop.at}/backend/actions`);
  assert.equal(actions.find((action) => action.name === 'attach').files.anonymous, true);
  await close();
});

test('an action is defined at its own address, and a newer version is told after a reload', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('409');
  await visit(`${shop.path}/actions/newest`);
  await textbox(page, 'SQL').fill('SELECT max(id) AS id FROM notes');
  await button(page, 'Define').click();
  await said(page).getByText('Defined version 1').waitFor();
  await textbox(page, 'SQL').fill('SELECT max(id) AS mine FROM notes');
  await service.ask('PUT', `${shop.at}/backend/actions`, { actions: [{ name: 'newest', sql: 'SELECT max(id) AS theirs FROM notes' }] });
  await page.reload();
  await page.locator('main[aria-busy="false"]').waitFor();
  await button(page, 'Define').click();
  await page.locator('[role="alert"][data-code="action_conflict"]').waitFor();
  await button(page, 'Go on from version 2').click();
  await button(page, 'Define').click();
  await said(page).getByText('Defined version 3').waitFor();
  await close();
});

test('prices are added and withdrawn', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('409');
  await visit(`${shop.path}/payments`);
  const add = async () => {
    await field(page, 'Product name').fill('Handbook');
    await field(page, 'Label').fill('PDF');
    await field(page, 'Amount').fill('900');
    await field(page, 'Currency').fill('eur');
    await field(page, 'Key').fill('handbook');
    await button(page, 'Add price').click();
  };
  await add();
  const row = table(page, 'Prices').getByRole('row').filter({ hasText: 'handbook' });
  await row.getByText('on sale').waitFor();
  await add();
  await page.locator('[role="alert"][data-code="price_key_taken"]').waitFor();
  assert.equal(await field(page, 'Label').inputValue(), 'PDF');
  await button(row, 'Withdraw').click();
  await button(dialog(page, 'Withdraw'), 'Withdraw').click();
  await row.getByText('withdrawn').waitFor();
  await close();
});

test('tools for agents are switched on', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/agents`);
  await toggle(page, 'Tools for agents').click();
  await said(page).getByText('Agents may call').waitFor();
  assert.equal(await toggle(page, 'Tools for agents').getAttribute('aria-checked'), 'true');
  await page.getByText(`/${shop.page.slug}/mcp`).waitFor();
  await close();
});

test('keys are made and revoked, and the audit knows', async () => {
  const { page, visit, close } = await service.open();
  await visit('/w/acme/keys');
  await field(page, 'Role').selectOption('viewer');
  await field(page, 'Ends').selectOption('In a day');
  await field(page, 'Note').fill('for the printer');
  await button(page, 'Make key').click();
  await field(page, 'Credential').waitFor();
  const row = table(page, 'Keys').getByRole('row').filter({ hasText: 'for the printer' });
  await button(row, 'Revoke').click();
  await button(dialog(page, 'Revoke'), 'Revoke').click();
  await row.waitFor({ state: 'detached' });
  await visit('/w/acme/audit');
  await table(page, 'Audit').getByText('key.revoke').first().waitFor();
  await table(page, 'Audit').getByText('key.create').first().waitFor();
  await close();
});

test('settings are saved, and a project goes by its name', async () => {
  const project = await service.ask('POST', '/projects', { name: 'To be gone' });
  const { page, visit, close } = await service.open();
  await visit(`/p/${project.id}/settings`);
  await field(page, 'Name').fill('Renamed');
  await field(page, 'Description').fill('Described');
  await button(page, 'Save').click();
  await said(page).getByText('Saved').waitFor();
  assert.equal((await service.ask('GET', `/projects/${project.id}`)).name, 'Renamed');
  await page.reload();
  await settle(page);
  assert.equal(await field(page, 'Name').inputValue(), 'Renamed');
  await button(page, 'Delete project').click();
  const asked = dialog(page, 'Delete project');
  assert.equal(await button(asked, 'Delete project').getAttribute('aria-disabled'), 'true');
  await field(asked, 'Project name').fill('Renamed');
  await button(asked, 'Delete project').click();
  await page.getByRole('heading', { level: 1, name: 'Projects' }).waitFor();
  await settle(page);
  assert.equal(await link(page, 'Renamed').count(), 0);
  await visit('/w/acme/settings');
  await field(page, 'Display name').fill('Acme Inc.');
  await button(page, 'Save').click();
  await said(page).getByText('Saved').waitFor();
  await close();
});
