// Every type of page, at phone and desktop width, in light and dark, and on paper.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { inspectContrast } from './lib/contrast.mjs';
import { hasMoved, inspect, inspectFit, inspectPrint, validate, watchShifts } from './lib/inspect.mjs';
import * as samples from './lib/samples.mjs';
import { startSvc } from './lib/svc.mjs';

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  for (const type of ['markdown', 'json', 'csv', 'html', 'mermaid']) {
    await svc.deploy({ type, name: type, title: `A page of ${type}`, content: samples[type] });
  }
  await svc.deploy({ name: 'locked', password: 'opensesame', content: '<h1>For you</h1>' });
  await svc.deploy({ name: 'once', one_time: true, content: '<h1>Once</h1>' });
  await svc.deploy({ name: 'banned', content: '<h1>Gone</h1>' });
  await svc.operate('deployment', 'disable', 'banned');
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

const pages = {
  markdown: { status: 200, title: 'A page of markdown' },
  json: { status: 200, title: 'A page of json' },
  csv: { status: 200, title: 'A page of csv' },
  html: { status: 200, title: 'My own page' },
  mermaid: { status: 200, title: 'A page of mermaid' },
  locked: { status: 401, title: 'This page is protected' },
  once: { status: 200, title: 'This page can be read once' },
  banned: { status: 403, title: 'This page has been disabled' },
  'not-there': { status: 404, title: 'Not found' },
  '': { status: 200, title: 'svc: publish a page, get a link' },
  'problems/render_failed': { status: 200, title: 'The content cannot be rendered' },
};

for (const [path, expected] of Object.entries(pages)) {
  const name = path.replace('/', '-') || 'landing';

  for (const width of widths) {
    test(`${name} at ${width} px`, async () => {
      const { page, context, faults } = await openPage(browser, svc.url, { width });
      try {
        await watchShifts(page);
        const url = `${svc.url}/${path}`;
        let answer = await page.goto(url);
        // An operator's command takes effect within a second.
        for (let tries = 0; answer.status() !== expected.status && tries < 20; tries++) {
          await page.waitForTimeout(100);
          answer = await page.goto(url);
        }
        assert.equal(answer.status(), expected.status);
        assert.equal(await page.title(), expected.title);
        // A busy machine may paint a table before all of its rows are there: what moves every time is the page's doing.
        for (let loads = 1; loads < 5 && (await hasMoved(page)); loads++) {
          await page.goto(url);
        }
        // A page of type html is its author's, byte for byte. Before anything is shot: that changes the window for a moment.
        assert.deepEqual(await (path === 'html' ? inspectFit : inspect)(page), []);
        await shoot(page, `${name}-${width}-light`);
        await page.emulateMedia({ colorScheme: 'dark' });
        await shoot(page, `${name}-${width}-dark`);
        assert.deepEqual(await inspectContrast(page), []);
        if (width < 600) {
          await page.setViewportSize({ width: 320, height: 640 });
          assert.deepEqual((await inspectFit(page)).filter((said) => said.includes('wider')), []);
        }
        assert.deepEqual(faults, []);
      } finally {
        await context.close();
      }
    });
  }

  test(`${name} on paper`, async () => {
    // The width that A4 leaves between usual margins, in CSS pixels.
    const { page, context } = await openPage(browser, svc.url, { width: 718, scheme: 'dark' });
    try {
      await page.goto(`${svc.url}/${path}`);
      const wrong = await inspectPrint(page);
      await shoot(page, `${name}-print`);
      assert.deepEqual(wrong, []);
    } finally {
      await context.close();
    }
  });

  if (path === 'html') continue;
  test(`${name} is valid HTML`, async () => {
    const answer = await fetch(`${svc.url}/${path}`, { headers: { accept: 'text/html' } });
    assert.deepEqual(await validate(await answer.text()), []);
  });
}

test('a tree of JSON folds without scripts', async () => {
  const { page, context } = await openPage(browser, svc.url, { scripts: false });
  try {
    await page.goto(`${svc.url}/json`);
    const deep = page.getByText('"part 3"');
    const parts = page.locator('details', { hasText: 'part 3' }).nth(1).locator('> summary');
    assert.ok(await deep.isVisible(), 'it is open at first');
    await parts.click();
    assert.ok(await deep.isHidden(), 'it is folded');
    await parts.focus();
    await page.keyboard.press('Enter');
    assert.ok(await deep.isVisible(), 'the keyboard opens it again');
  } finally {
    await context.close();
  }
});

test('nothing in JSON or CSV becomes markup', async () => {
  const { page, context } = await openPage(browser, svc.url);
  try {
    for (const type of ['json', 'csv']) {
      await page.goto(`${svc.url}/${type}`);
      assert.equal(await page.locator('main script').count(), 0);
      assert.ok(await page.getByText('<b>not bold</b>').count(), `${type} shows it as text`);
    }
  } finally {
    await context.close();
  }
});

test('headings can be linked to', async () => {
  const { page, context } = await openPage(browser, svc.url, { width: 390 });
  try {
    await page.goto(`${svc.url}/markdown#kinds-of-lantern`);
    const heading = page.getByRole('heading', { name: 'Kinds of lantern' });
    await page.waitForFunction(() => window.scrollY > 0);
    const top = (await heading.boundingBox()).y;
    assert.ok(top >= 0 && top < 200, `it is at ${top}`);
  } finally {
    await context.close();
  }
});
