// Pages: made, drafted, compared, promoted, rolled back, claimed and deleted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, dialog, field, link, makeShop, said, settle, startConsole, table, textbox } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
});
after(() => service?.stop());

const at = () => `${shop.at}/frontends/${shop.page.slug}`;
const live = async () => (await service.ask('GET', `${at()}/revisions`)).active_revision_id;
const draft = async (content, message) => (await service.ask('POST', `${at()}/revisions`, { base_revision_id: await live(), content, message })).revision.revision_id;

test('a page is made, and one that cannot be rendered is told at its line', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('400');
  await visit(`${shop.path}/pages`);
  await link(page, 'New page').click();
  await field(page, 'Type').selectOption('json');
  await field(page, 'Content').fill('{\n  "a": ,\n}');
  await field(page, 'Slug').fill('data-page');
  await button(page, 'Publish').click();
  const fault = page.locator('[role="alert"][data-code="render_failed"]');
  await fault.waitFor();
  assert.match(await fault.textContent(), /line 2/);
  await field(page, 'Content').fill('{"a": 1}');
  await button(page, 'Publish').click();
  await page.getByRole('heading', { level: 1, name: 'data-page' }).waitFor();
  await said(page).getByText('Published').waitFor();
  await close();
});

test('a draft is saved, compared and promoted', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/pages/${shop.page.slug}`);
  await textbox(page, 'Source').fill('# Harbour\n\nOpen from ten.\n');
  await field(page, 'Message').fill('Winter hours');
  await button(page, 'Save draft').click();
  await said(page).getByText('Saved the draft').waitFor();
  await page.getByRole('tab', { name: 'Revisions' }).click();
  await link(table(page, 'Revisions'), 'Winter hours').click();
  await page.getByRole('heading', { level: 1, name: 'Revision' }).waitFor();
  await settle(page);
  const difference = page.getByRole('region', { name: 'Difference', exact: true });
  await difference.getByText('Open from nine.').waitFor();
  await difference.getByText('Open from ten.').waitFor();
  for (const title of ['Live', 'This revision']) {
    const address = await page.getByTitle(title, { exact: true }).getAttribute('src');
    assert.ok(address.startsWith(`${service.svc.url}/_preview/${shop.page.id}/`), address);
    await page.frameLocator(`iframe[title="${title}"]`).getByText(title === 'Live' ? 'Open from nine.' : 'Open from ten.').waitFor();
  }
  await button(page, 'Promote').click();
  await said(page).getByText('Promoted').waitFor();
  await page.getByText('This revision is live.').first().waitFor();
  const source = await service.ask('GET', `${at()}/content`);
  assert.equal(source.content, '# Harbour\n\nOpen from ten.\n');
  await close();
});

test('a promote over a newer release asks again', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('409');
  const mine = await draft('# Harbour\n\nMine.\n', 'mine');
  await visit(`${shop.path}/pages/${shop.page.slug}/${mine}`);
  await service.ask('PUT', at(), { content: '# Harbour\n\nOf somebody else.\n' });
  const theirs = await live();
  await button(page, 'Promote').click();
  const fault = page.locator('[role="alert"][data-code="revision_conflict"]');
  await fault.waitFor();
  assert.ok((await fault.textContent()).includes(theirs));
  assert.equal(await live(), theirs);
  await button(page, 'Compare with what is live now').click();
  await page.getByRole('region', { name: 'Difference', exact: true }).getByText('Of somebody else.').waitFor();
  await button(page, 'Promote').click();
  await said(page).getByText('Promoted').waitFor();
  assert.equal(await live(), mine);
  // What the draft did not have is told.
  await page.getByText('What became live after that is not in it').waitFor();
  await close();
});

test('publishing at once, and going back', async () => {
  const { page, visit, close } = await service.open();
  const good = await live();
  await visit(`${shop.path}/pages/${shop.page.slug}`);
  await textbox(page, 'Source').fill('# Broken');
  await button(page, 'Publish now').click();
  await said(page).getByText('Published').waitFor();
  await page.getByRole('tab', { name: 'Releases' }).click();
  await table(page, 'Releases').getByText('publish').first().waitFor();
  await visit(`${shop.path}/pages/${shop.page.slug}/${good}`);
  await button(page, 'Roll back').click();
  await said(page).getByText('Rolled back').waitFor();
  assert.equal(await live(), good);
  await close();
});

test('a source keeps its line ends', async () => {
  const page_ = await service.ask('POST', `${shop.at}/frontends`, { type: 'html', content: '<!doctype html>\r\n<title>x</title>\r\n<p>one</p>\r\n', requested_slug: 'windows' });
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/pages/${page_.slug}`);
  await textbox(page, 'Source').press('Control+Home');
  await page.keyboard.press('End');
  await page.keyboard.type('<!-- kept -->');
  await button(page, 'Publish now').click();
  await said(page).getByText('Published').waitFor();
  assert.equal((await service.ask('GET', `${shop.at}/frontends/windows/content`)).content, '<!doctype html><!-- kept -->\r\n<title>x</title>\r\n<p>one</p>\r\n');
  await close();
});

test('a share becomes a page; a page and a draft go when somebody means it', async () => {
  const share = await service.svc.deploy({ type: 'markdown', content: '# News', name: 'news' });
  const { page, visit, close, allow } = await service.open();
  allow('404', '400');
  await visit(`${shop.path}/pages`);
  await button(page, 'Claim a share').click();
  await page.keyboard.type(share.id);
  await field(page, 'Delete token').fill('svcd_wrong');
  await button(page, 'Claim').click();
  await page.getByRole('alert').waitFor();
  await field(page, 'Delete token').fill(share.delete_token);
  await button(page, 'Claim').click();
  await link(table(page, 'Pages'), 'News').click();
  await page.getByRole('heading', { level: 1, name: 'News' }).waitFor();
  await settle(page);
  await button(page, 'Delete page').click();
  await button(dialog(page, 'Delete page'), 'Cancel').click();
  await page.waitForFunction(() => document.activeElement?.textContent === 'Delete page');
  await button(page, 'Delete page').click();
  await page.keyboard.press('Escape');
  await dialog(page, 'Delete page').waitFor({ state: 'detached' });
  await button(page, 'Delete page').click();
  await button(dialog(page, 'Delete page'), 'Delete page').click();
  await page.getByRole('heading', { level: 1, name: 'Pages' }).waitFor();
  const gone = await draft('# Harbour\n\nNever.\n', 'never mind');
  await visit(`${shop.path}/pages/${shop.page.slug}`);
  await page.getByRole('tab', { name: 'Revisions' }).click();
  await button(page.getByRole('row').filter({ hasText: 'never mind' }), 'Delete draft').click();
  await button(dialog(page, 'Delete draft'), 'Delete draft').click();
  await said(page).getByText('Deleted the draft').waitFor();
  const { revisions } = await service.ask('GET', `${at()}/revisions`);
  assert.ok(!revisions.some((one) => one.revision_id === gone));
  await close();
});

test('a site has its files', async () => {
  const site = await service.ask('POST', `${shop.at}/frontends`, { type: 'site', files: { 'index.html': { text: '<!doctype html><title>Site</title><p>Hello</p>' }, 'about/a.txt': { text: 'about' } }, requested_slug: 'site' });
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/pages/${site.slug}`);
  const files = table(page, 'Files');
  assert.equal(await files.locator('tbody tr').count(), 2);
  await button(files.getByRole('row').filter({ hasText: 'a.txt' }), 'Open file').click();
  await field(dialog(page, 'File'), 'File content').fill('about us');
  await button(dialog(page, 'File'), 'Publish file').click();
  await said(page).getByText('Published about/a.txt').waitFor();
  await field(page, 'File').setInputFiles({ name: 'more.txt', mimeType: 'text/plain', buffer: Buffer.from('more') });
  await field(page, 'Path').fill('deep/more words.txt');
  await button(page, 'Publish file').click();
  await files.getByText('deep/more words.txt').waitFor();
  await button(files.getByRole('row').filter({ hasText: 'more words' }), 'Delete file').click();
  await button(dialog(page, 'Delete file'), 'Delete file').click();
  await files.getByText('deep/more words.txt').waitFor({ state: 'detached' });
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download all files').click()]);
  assert.equal(download.suggestedFilename(), 'site.tar');
  await close();
});
