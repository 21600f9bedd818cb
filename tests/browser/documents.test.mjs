// Documents as people paste them, in the browser: directions, copying, narrow screens, paper.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, extname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage, startBrowser, widths } from './lib/browser.mjs';
import { inspect } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

const corpus = resolve(dirname(fileURLToPath(import.meta.url)), '../corpus/documents');
const types = { '.md': 'markdown', '.csv': 'csv', '.json': 'json' };
const slugs = new Map();

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  for (const file of await readdir(corpus)) {
    const type = types[extname(file)];
    if (!type) continue;
    const content = await readFile(join(corpus, file), 'utf8');
    const title = type === 'markdown' ? undefined : `Data: ${file}`;
    const { slug } = await svc.deploy({ type, content, title });
    slugs.set(file, slug);
  }
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens a document; `use` gets its page. */
async function openDocument(file, options, use) {
  const { page, context } = await openPage(browser, svc.url, options);
  try {
    await page.goto(`${svc.url}/${slugs.get(file)}`);
    return await use(page);
  } finally {
    await context.close();
  }
}

/** Faults that stay, by the beginning of what is said of them. */
const kept = {
  // Answers out of a conversation, which have no heading.
  'answer-nested.md': ['its first heading', 'page-has-heading-one'],
  // The corner of a table has no name either.
  'answer-tables.md': ['its first heading', 'page-has-heading-one', 'empty-table-header'],
  // The file itself names two of its nine columns.
  'bank-preamble.csv': ['empty-table-header'],
};

for (const file of ['readme-harbor.md', 'lecture-learning.md', 'notes-ar.md', 'notes-ja.md', 'answer-steps.md', 'bank-de.csv', 'export-wide.csv', 'api-user.json', 'design-orders.md', 'answer-nested.md', 'answer-tables.md', 'readme-comments.md', 'lecture-series.md', 'design-pipeline.md', 'bank-preamble.csv', 'api-ledger.json']) {
  test(`${file} can be read by everybody`, async () => {
    for (const width of widths) {
      for (const scheme of ['light', 'dark']) {
        await openDocument(file, { width, scheme }, async (page) => {
          // What is in another language says so.
          const known = ['its language is', ...(kept[file] ?? [])];
          const faults = (await inspect(page)).filter((fault) => !known.some((start) => fault.startsWith(start)));
          assert.deepEqual(faults, [], `${width} ${scheme}`);
        });
      }
    }
  });
}

test('what is copied of JSON is JSON, folded or not', async () => {
  const copied = () => {
    getSelection().selectAllChildren(document.querySelector('.tree'));
    return getSelection().toString();
  };
  for (const file of ['api-user.json', 'api-list.json', 'geo.json', 'empty.json', 'package.json']) {
    const content = JSON.parse(await readFile(join(corpus, file), 'utf8'));
    await openDocument(file, {}, async (page) => {
      await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
      assert.deepEqual(JSON.parse(await page.evaluate(copied)), content, file);
      await page.evaluate(() => document.querySelectorAll('details details').forEach((details) => (details.open = false)));
      const folded = await page.evaluate(copied);
      assert.doesNotThrow(() => JSON.parse(folded), folded);
    });
  }
});

test('text runs in its own direction', async () => {
  await openDocument('notes-ar.md', {}, async (page) => {
    const directions = await page.evaluate(() =>
      ['h1', 'p', 'ul', 'blockquote', 'td'].map((name) => getComputedStyle(document.querySelector(name)).direction));
    assert.deepEqual(directions, ['rtl', 'rtl', 'rtl', 'rtl', 'rtl']);
  });
  await openDocument('api-user.json', {}, async (page) => {
    const direction = await page.evaluate(() => {
      const span = [...document.querySelectorAll('.tree span')].find((span) => span.textContent.includes('العربية'));
      return getComputedStyle(span).direction;
    });
    assert.equal(direction, 'rtl');
  });
});

test('neither phones nor paper have marks behind headings', async () => {
  const hidden = (page) => page.evaluate(() => [...document.querySelectorAll('.anchor')].every((anchor) => getComputedStyle(anchor).display === 'none'));
  await openDocument('readme-harbor.md', { width: 360 }, async (page) => assert.ok(await hidden(page)));
  await openDocument('readme-harbor.md', {}, async (page) => {
    assert.ok(!(await hidden(page)));
    await page.emulateMedia({ media: 'print' });
    assert.ok(await hidden(page));
    assert.equal(await page.locator('.foot').isVisible(), false);
  });
});

test('no column is lost on paper and no number is broken', async () => {
  for (const file of ['export-wide.csv', 'bank-us.csv', 'bank-de.csv', 'bank-fr.csv', 'notes-ar.md', 'readme-harbor.md']) {
    await openDocument(file, { width: 718 }, async (page) => {
      await page.emulateMedia({ media: 'print' });
      const { beyond, broken } = await page.evaluate(() => {
        const cells = [...document.querySelectorAll('th,td')];
        const lines = (cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
        };
        return {
          beyond: cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth + 1).map((cell) => cell.textContent),
          broken: cells.filter((cell) => /^[-−]?[\d.,' ]+$/.test(cell.textContent) && lines(cell) > 1).map((cell) => cell.textContent),
        };
      });
      assert.deepEqual(beyond, [], `${file}: beyond the paper`);
      assert.deepEqual(broken, [], `${file}: broken numbers`);
    });
  }
});

test('a drawing fits a phone, and is whole at a touch', async () => {
  await openDocument('design-orders.md', { width: 360, scripts: false }, async (page) => {
    const drawing = page.locator('figure > svg').first();
    const { width } = await drawing.boundingBox();
    assert.ok(width <= 330, `${width}`);
    await page.getByLabel('Full size').first().check();
    assert.ok((await drawing.boundingBox()).width > width);
  });
  await openDocument('design-orders.md', {}, async (page) => assert.equal(await page.getByLabel('Full size').first().isVisible(), false));
});
