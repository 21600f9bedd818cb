// The five flows of an owner, by the keyboard alone.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, field, makeShop, said, settle, startConsole, table } from '../lib/console.mjs';

let service;

before(async () => {
  service = await startConsole();
});
after(() => service?.stop());

/** Answers what has the focus: its role and its name, as somebody who does not see it is told. */
const focused = (page) =>
  page.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    const labels = [...(element.labels ?? [])].map((label) => label.textContent.trim());
    return element.getAttribute('aria-label') ?? (labels[0] || element.textContent.trim());
  });

/** Presses Tab until something has the focus, which must be seen. */
async function tabTo(page, name, { most = 120, back = false } = {}) {
  for (let turn = 0; turn < most; turn++) {
    const now = await focused(page);
    if (now === name || (name instanceof RegExp && name.test(now))) {
      // An editor says a moment later that it has the focus.
      const isSeen = await page
        .waitForFunction(
          () => {
            let element = document.activeElement;
            while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
            return getComputedStyle(element).outlineStyle !== 'none' || element.closest('.cm-focused') || element.localName === 'h1';
          },
          undefined,
          { timeout: 1000 },
        )
        .catch(() => false);
      assert.ok(isSeen, `the focus on ${name} is not seen`);
      return;
    }
    await page.keyboard.press(back ? 'Shift+Tab' : 'Tab');
  }
  assert.fail(`Tab does not lead to ${name}`);
}

async function go(page, words, heading) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to', exact: true }).waitFor();
  await page.keyboard.type(words);
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
  await settle(page);
}

test('first minute: a guest book', async () => {
  const { page, close } = await service.open();
  await page.locator('body').press('Tab');
  await tabTo(page, 'New project');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'New project' }).waitFor();
  await tabTo(page, 'Name');
  await page.keyboard.type('Harbour book');
  await tabTo(page, 'Empty');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  assert.equal(await focused(page), 'Guest book');
  await tabTo(page, 'Create');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Harbour book' }).waitFor();
  await settle(page);
  await go(page, 'table entries', 'entries');
  await table(page, 'Rows').getByText('The host').waitFor();
  const { projects } = await service.ask('GET', '/projects');
  const project = projects.find((one) => one.name === 'Harbour book');
  const { frontends } = await service.ask('GET', `/projects/${project.id}/frontends`);
  assert.equal(frontends.length, 1);
  const { results } = await service.ask('POST', `/projects/${project.id}/backend/batch`, { ops: [{ action: 'sign', params: { name: 'Ada', text: 'Hello' } }, { action: 'latest' }] });
  assert.equal(results[1].rows[0].text, 'Hello');
  await close();
});

test('bad release: back in two steps from the page', async () => {
  const shop = await makeShop(service, 'Rollback');
  const at = `${shop.at}/frontends/${shop.page.slug}`;
  const good = (await service.ask('GET', `${at}/revisions`)).active_revision_id;
  await service.ask('PUT', at, { content: '# Broken\n' });
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/pages/${shop.page.slug}`);
  await page.locator('h1').focus();
  await tabTo(page, 'the release that was live');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Revision' }).waitFor();
  await settle(page);
  await tabTo(page, 'Roll back');
  await page.keyboard.press('Enter');
  await said(page).getByText('Rolled back').waitFor();
  assert.equal((await service.ask('GET', `${at}/revisions`)).active_revision_id, good);
  await close();
});

test('lost rows: an earlier moment, and the way back from it', async () => {
  const shop = await makeShop(service, 'Restore');
  const query = (sql) => service.ask('POST', `${shop.at}/backend/query`, { sql, params: {} });
  const number = async () => (await query('SELECT count(*) AS n FROM notes')).rows[0].n;
  await query("INSERT INTO notes (text) VALUES ('kept')");
  await new Promise((wake) => setTimeout(wake, 50));
  await query('DELETE FROM notes');
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/history`);
  await page.locator('h1').focus();
  await tabTo(page, 'Moment');
  await page.keyboard.press('ArrowLeft');
  await tabTo(page, 'Restore');
  await page.keyboard.press('Enter');
  const asked = page.getByRole('dialog', { name: 'Restore', exact: true });
  await asked.getByText('1 later commit').waitFor();
  await tabTo(page, 'Restore');
  await page.keyboard.press('Enter');
  await said(page).getByText('as it was').waitFor();
  await settle(page);
  assert.equal(await number(), 2);
  // The dialog is gone, and the focus is where it was.
  await page.waitForFunction(() => document.activeElement?.textContent === 'Restore');
  await tabTo(page, 'Undo');
  await page.keyboard.press('Enter');
  await said(page).getByText('Undone').waitFor();
  assert.equal(await number(), 0);
  await close();
});

test('safe migration: tried, then applied as it was tried', async () => {
  const shop = await makeShop(service, 'Migrate');
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/schema`);
  await page.locator('h1').focus();
  await tabTo(page, 'Migration');
  await page.keyboard.insertText('ALTER TABLE notes ADD COLUMN likes INTEGER NOT NULL DEFAULT 0');
  await page.keyboard.press('Escape');
  await tabTo(page, 'Try');
  await page.keyboard.press('Enter');
  const changes = page.getByRole('region', { name: 'Changes', exact: true });
  await changes.getByText('likes INTEGER').waitFor();
  await changes.getByText('Every action works on').waitFor();
  // Another text has to be tried first.
  await tabTo(page, 'Migration', { back: true });
  await page.keyboard.type(' ');
  assert.equal(await button(page, 'Apply').getAttribute('aria-disabled'), 'true');
  await page.keyboard.press('Backspace');
  await tabTo(page, 'Apply');
  await page.keyboard.press('Enter');
  await said(page).getByText('Applied migration 2').waitFor();
  await table(page, 'Columns of notes').getByText('likes').waitFor();
  await close();
});

test('key for an agent: made, shown once, copied', async () => {
  const shop = await makeShop(service, 'Agents');
  const { page, context, visit, close } = await service.open();
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.origin });
  await visit(`${shop.path}/agents`);
  await page.locator('h1').focus();
  await tabTo(page, 'Make key');
  await page.keyboard.press('Enter');
  await field(page, 'Credential').waitFor();
  const credential = await field(page, 'Credential').inputValue();
  assert.match(credential, /^svc_/);
  await tabTo(page, 'Copy');
  await page.keyboard.press('Enter');
  await said(page).getByText('Copied the credential').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), credential);
  const answer = await fetch(`${service.svc.url}/api/v1/me`, { headers: { authorization: `Bearer ${credential}` } });
  assert.equal((await answer.json()).memberships[0].role, 'machine');
  await visit('/w/acme/keys');
  assert.ok(!(await page.content()).includes(credential));
  await close();
});
