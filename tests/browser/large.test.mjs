// Pages of long sources: there at once, whatever comes behind.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const objects = Array.from({ length: 3000 }, (_, id) => ({ id, name: `Item ${id}`, tags: ['a', 'b'], price: id * 1.5, more: { ok: true } }));
const numbers = Array.from({ length: 50_000 }, (_, at) => at);
const rows = Array.from({ length: 6_000 }, (_, at) => `${at},Item ${at},${at}.50,some remark here`);

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Publishes a source and opens its page. */
async function onPublishedPage(share, look) {
  const { url } = await svc.deploy(share);
  const { page, context, faults } = await openPage(browser, svc.url);
  try {
    await page.goto(url);
    await look(page);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
}

/** How many of the elements that match have been laid out. */
const laidOut = (page, selector) =>
  page.evaluate(
    (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility({ contentVisibilityAuto: true })).length,
    selector,
  );

for (const [what, value, last] of [
  ['objects', objects, '"Item 2999"'],
  ['numbers', numbers, '49999'],
]) {
  test(`a large JSON of ${what} lays out what is in view, and the rest when one gets there`, async () => {
    await onPublishedPage({ type: 'json', content: JSON.stringify(value) }, async (page) => {
      const shown = await laidOut(page, '.k > *');
      assert.ok(shown > 50 && shown < 2_000, `${shown} of ${value.length} entries`);
      await page.keyboard.press('End');
      const end = page.locator('.k').last();
      await end.scrollIntoViewIfNeeded();
      if (what === 'objects') await end.locator('> details > summary').last().click();
      await end.getByText(last).waitFor();
      assert.ok((await laidOut(page, '.k > *')) < 4_000, 'and still not all');
    });
  });
}

test('a long table keeps its head in view, and the page its width', async () => {
  await onPublishedPage({ type: 'csv', title: 'Table', content: ['Id,Name,Price,Remark', ...rows].join('\n') }, async (page) => {
    const region = page.getByRole('region', { name: 'Table' });
    const head = page.getByRole('columnheader', { name: 'Name' });
    const place = async () => (await head.boundingBox()).y - (await region.boundingBox()).y;
    await region.evaluate((element) => element.scrollTo(0, 200));
    const before = await place();
    await region.evaluate((element) => element.scrollTo(0, 100_000));
    await page.getByRole('cell', { name: 'Item 2900', exact: true }).waitFor();
    assert.ok(Math.abs(before) < 2 && Math.abs((await place()) - before) < 1, 'the head stays at the top of the table');
    assert.ok(await head.isVisible());
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth <= 0), true);
  });
});
