// The page of the guide on payments sells a download, at the provider of `serve --dev`.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

let svc;
let browser;
let shop;

before(async () => {
  [svc, browser] = await Promise.all([startSvc({ options: ['--dev'] }), startBrowser()]);
  const ask = await svc.owner('acme');
  const { id } = await ask('POST', '', { name: 'Books' });
  const price = { key: 'handbook', product_name: 'Handbook', label: 'PDF', amount: 900, currency: 'eur' };
  const { id: priceId } = await ask('POST', `/${id}/payments/catalog`, price);
  const guide = await readFile(new URL('../../docs/payments.md', import.meta.url), 'utf8');
  const page = guide.split('```html\n')[1].split('```')[0];
  assert.ok(page.trim().split('\n').length <= 26);
  const content = page.replace("'PRICE'", `'${priceId}'`);
  shop = await ask('POST', `/${id}/frontends`, { type: 'html', content, requested_slug: 'handbook' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

test('a page shows what is on sale, and sells it by its key', async () => {
  const { page, context } = await openPage(browser, new URL(shop.url).origin);
  await page.goto(shop.url);
  const prices = await page.evaluate(() => window.svc.payments.catalog());
  const { id, ...offer } = prices[0];
  assert.equal(prices.length, 1);
  assert.match(id, /^price_/);
  assert.deepEqual(offer, {
    key: 'handbook', product: 'Handbook', description: null, label: 'PDF', amount: 900, currency: 'eur', recurring: false,
  });
  // The promise never settles, because the page is left.
  await page.evaluate(() => { window.svc.payments.checkout('handbook'); });
  await page.getByText('no money moves').waitFor();
  await context.close();
});

test('a visitor buys, comes back, and has it until the money goes back', async () => {
  const { page, context } = await openPage(browser, new URL(shop.url).origin);
  const buy = page.getByRole('button', { name: 'Buy it' });
  const download = page.getByRole('link', { name: 'Download it' });
  await page.goto(shop.url);
  await buy.waitFor();
  assert.equal(await download.isVisible(), false);
  // Two clicks lead to one page.
  await buy.dblclick();
  await page.getByText('no money moves').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.waitForURL(/checkout=canceled/);
  await buy.click();
  await page.getByRole('button', { name: 'Pay' }).click();
  await page.waitForURL(/checkout=success/);
  await download.waitFor();
  assert.equal(await buy.isVisible(), false);
  const { payments } = await page.evaluate(() => window.svc.payments.status());
  assert.equal(payments.length, 1);
  assert.equal(payments[0].matched_by, 'cookie');
  // Another browser has not paid.
  const other = await openPage(browser, new URL(shop.url).origin);
  await other.page.goto(shop.url);
  await other.page.getByRole('button', { name: 'Buy it' }).waitFor();
  await other.context.close();
  await context.close();
});
