// Tables of CSV: searched, filtered and sorted where a page has our script, and whole without.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { hasMoved, inspect, inspectFit, watchShifts } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

const lamps = ['Paper', 'Copper', 'Ölin', 'Glass', '<b>Iron</b>'];
const rows = Array.from({ length: 40 }, (_, at) => `${lamps[at % 5]} ${at},"${at === 7 ? '' : `${(41 - at) * 31},50 €`}",2026-11-${String(1 + (at % 28)).padStart(2, '0')}`);
const content = ['Lamp,Price,Since', ...rows].join('\n');
let svc;
let browser;
let frontend;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const ask = await svc.owner('acme');
  const { id } = await ask('POST', '', { name: 'Shop' });
  frontend = await ask('POST', `/${id}/frontends`, { type: 'csv', content, requested_slug: 'prices' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** The first cells of the rows that are shown, in their order. */
const shownFirstCells = (page) => page.locator('tbody tr:visible td:first-child').allTextContents();
const firstPrices = async (page) => (await page.locator('tbody tr:visible td:nth-child(2)').allTextContents()).slice(0, 2);

for (const width of widths) {
  for (const scheme of ['light', 'dark']) {
    test(`a table is searched, filtered and sorted at ${width} px, ${scheme}`, async () => {
      const { page, context, faults } = await openPage(browser, new URL(frontend.url).origin, { width, scheme });
      try {
        await watchShifts(page);
        await page.goto(frontend.url);
        const search = page.getByRole('searchbox', { name: 'Search' });
        await search.waitFor();
        for (let loads = 1; loads < 5 && (await hasMoved(page)); loads++) {
          await page.reload();
          await search.waitFor();
        }
        assert.deepEqual(await inspectFit(page).then((wrong) => wrong.filter((said) => !said.includes('heading'))), []);
        assert.equal(await page.getByRole('heading', { level: 1, name: 'Prices' }).count(), 1);
        await shoot(page, `table-${width}-${scheme}`);

        await search.fill('olin');
        await page.getByText('8 of 40 rows').waitFor();
        assert.deepEqual((await shownFirstCells(page)).slice(0, 2), ['Ölin 2', 'Ölin 7']);
        await page.getByLabel('Filter by').selectOption('Price');
        await page.getByLabel('Condition').fill('> 1000,00');
        await page.getByText('1 of 40 rows').waitFor();
        await page.getByLabel('Condition').fill('');
        await search.fill('');
        await page.waitForFunction(() => !document.querySelector('output').textContent);

        const head = page.getByRole('columnheader', { name: 'Price' });
        const button = head.getByRole('button');
        for (const [order, prices] of [['ascending', ['62,50 €', '93,50 €']], ['descending', ['1271,50 €', '1240,50 €']]]) {
          await button.focus();
          await page.keyboard.press('Enter');
          assert.equal(await head.getAttribute('aria-sort'), order);
          assert.deepEqual(await firstPrices(page), prices);
          assert.equal((await shownFirstCells(page)).at(-1), 'Ölin 7', 'an empty cell comes last');
        }
        await button.press('Enter');
        assert.equal(await head.getAttribute('aria-sort'), 'none');
        assert.equal((await shownFirstCells(page))[0], 'Paper 0');
        // It was looked at above whether it moved while it was loaded; since then rows came and went because they were asked to.
        await page.evaluate(() => { window.shifts.length = 0; });
        assert.deepEqual(await inspect(page), []);
        assert.deepEqual(faults, []);
      } finally {
        await context.close();
      }
    });
  }
}

test('without our script a table is whole, and nothing looks as if it could be pressed', async () => {
  const { slug } = await svc.deploy({ type: 'csv', content });
  for (const [url, scripts] of [[frontend.url, false], [`${svc.url}/${slug}`, true]]) {
    const { page, context, faults } = await openPage(browser, new URL(url).origin, { width: 360, scripts });
    try {
      await page.goto(url);
      assert.equal(await page.locator('button, input').count(), 0);
      assert.equal((await shownFirstCells(page)).length, 40);
      const { height } = await page.getByRole('region', { name: 'Table' }).boundingBox();
      assert.ok(height > 1_000, `all of it is there, not a box of ${height} px`);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  }
});

test('a page of data has a heading for readers of screens, and shows none that nobody gave', async () => {
  for (const [type, source, name] of [
    ['csv', content, 'Table of 40 rows, 3 columns'],
    ['json', '[1, 2]', 'A JSON array of 2 items'],
    ['mermaid', 'flowchart TD\n  A --> B', 'Diagram'],
  ]) {
    const { slug } = await svc.deploy({ type, content: source });
    const { page, context } = await openPage(browser, svc.url, { width: 360 });
    try {
      await page.goto(`${svc.url}/${slug}`);
      const heading = page.getByRole('heading', { level: 1, name });
      assert.equal(await heading.count(), 1, type);
      const { width, height } = await heading.boundingBox();
      assert.ok(width <= 1 && height <= 1, `${type}: ${width} by ${height}`);
      assert.deepEqual((await inspect(page)).filter((said) => !said.includes('first heading')), []);
    } finally {
      await context.close();
    }
  }
});
