// The guides in a browser: their list, what is on the page, the search, and all of it without scripts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { inspect, inspectFit } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens a guide; `use` gets its page. */
async function openGuide(name, options, use) {
  const { page, context, faults } = await openPage(browser, svc.url, options);
  try {
    await page.goto(`${svc.url}/_svc/docs/${name}`);
    await use(page);
    assert.deepEqual(faults, [], name);
  } finally {
    await context.close();
  }
}

for (const width of [360, 1280]) {
  for (const scheme of ['light', 'dark']) {
    test(`guides can be read by everybody, ${width} ${scheme}`, async () => {
      for (const name of ['', 'apps', 'api-reference', 'api-reference-projects']) {
        await openGuide(name, { width, scheme }, async (page) => {
          assert.deepEqual(await inspect(page), [], name);
        });
      }
    });
  }
}

test('a section is found and opened', () =>
  openGuide('share', { width: 1280 }, async (page) => {
    const field = page.getByRole('searchbox', { name: 'Search the guides' });
    await field.fill('idempotency-key');
    const found = page.getByRole('list', { name: 'Found' }).getByRole('link');
    await found.first().waitFor();
    await field.press('Enter');
    await page.waitForURL(/\/_svc\/docs\/[a-z-]+#[a-z_-]+$/);
    const id = new URL(page.url()).hash.slice(1);
    assert.equal(await page.locator(`[id="${id}"]`).count(), 1);
    await page.getByRole('searchbox').fill('nothing-has-this-word');
    await page.getByRole('status').getByText('Nothing has').waitFor();
    await page.getByRole('searchbox').press('Escape');
    assert.equal(await page.getByRole('searchbox').inputValue(), '');
  }));

test('without scripts there is no search, and the list is there', () =>
  openGuide('share', { width: 360, scripts: false }, async (page) => {
    assert.equal(await page.getByRole('search').isVisible(), false);
    assert.deepEqual(await inspectFit(page), []);
    await page.getByRole('navigation', { name: 'All guides' }).getByRole('link', { name: 'API reference' }).click();
    await page.getByRole('heading', { name: 'API reference', level: 1 }).waitFor();
  }));
