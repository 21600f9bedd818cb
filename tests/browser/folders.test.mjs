// Folders of `svc init`, served by `svc dev`: how each template looks and works, and pages that load themselves again after a save.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { initFolder, startDev } from './lib/dev.mjs';
import { inspect, validate } from './lib/inspect.mjs';

let browser;

before(async () => {
  browser = await startBrowser();
});

after(() => browser?.close());

/** Runs a test with a template's folder that is served. */
async function withTemplate(template, work) {
  const folder = await initFolder(template);
  let dev;
  try {
    dev = await startDev(folder);
    await work({ folder, dev, open: (slug, options) => open(dev.pages[slug], options) });
  } finally {
    await dev?.stop();
    await folder.remove();
  }
}

async function open(url, options) {
  const opened = await openPage(browser, new URL(url).origin, options);
  await opened.page.goto(url);
  return opened;
}

/** What of a page is there once its data is. */
const loaded = {
  home: 'h1',
  book: 'article',
  board: '.card',
  survey: 'form',
  'survey-results': '#place .bar',
  handbook: 'main svg',
};

/** Signs in at the provider of development. */
async function signIn(page, name) {
  await page.getByRole('button', { name: 'Sign in to change it' }).click();
  await page.fill('[name=name]', name);
  await page.fill('[name=email]', `${name.toLowerCase()}@example.com`);
  await page.locator('button:not([name=cancel])').first().click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

/** Waits until a page has been loaded again; a mark in it is gone then. */
const mark = (page) => page.evaluate(() => (window.marked = true));
const waitForReload = (page) => page.waitForFunction(() => !window.marked && document.readyState === 'complete');

for (const template of ['blank', 'guest-book', 'board', 'pictures', 'survey', 'docs']) {
  test(`the template ${template} is good to look at and accessible`, () =>
    withTemplate(template, async ({ dev }) => {
      for (const [slug, url] of Object.entries(dev.pages)) {
        const source = await (await fetch(url.replace(/\/\/[^/:]+/, '//localhost'))).text();
        // Pages of Markdown have tests of their own.
        if (template !== 'docs') assert.deepEqual(await validate(source), [], slug);
        for (const width of widths) {
          for (const scheme of ['light', 'dark']) {
            const { page, faults, context } = await open(url, { width, scheme });
            await page.locator(loaded[slug] ?? 'h1').first().waitFor();
            await page.waitForTimeout(700);
            assert.deepEqual(await inspect(page), [], `${slug} ${width} ${scheme}`);
            await shoot(page, `folder-${slug}-${width}-${scheme}`);
            assert.deepEqual(faults, [], `${slug} ${width} ${scheme}`);
            await context.close();
          }
        }
      }
    }));
}

test('an entry in the guest book is seen by all at once, and is text', () =>
  withTemplate('guest-book', async ({ open }) => {
    const [ada, bob] = [await open('book'), await open('book')];
    await bob.page.locator('article').waitFor();
    const words = '<img src=x onerror="document.title=1"> & "quotes"';
    await ada.page.getByLabel('Your name').fill('Ada');
    await ada.page.getByLabel('Your words').fill(words);
    await ada.page.getByRole('button', { name: 'Sign the book' }).click();
    for (const { page, faults } of [ada, bob]) {
      await page.getByText(words).waitFor();
      assert.equal(await page.locator('h2').textContent(), '2 entries');
      assert.equal(await page.locator('article img').count(), 0);
      assert.deepEqual(faults, []);
    }
    assert.equal(await ada.page.getByRole('status').textContent(), 'Thank you!');
    await ada.context.close();
    await bob.context.close();
  }));

test('who is signed in changes the board, and all see the cards and who is here', () =>
  withTemplate('board', async ({ open }) => {
    const [ada, bob] = [await open('board'), await open('board')];
    const lane = (page, name) => page.getByRole('region', { name: new RegExp(name) });
    await bob.page.locator('.card').first().waitFor();
    assert.equal(await bob.page.locator('.card:enabled').count(), 0, 'who is not signed in reads');
    await signIn(ada.page, 'Ada');
    await bob.page.locator('.face[title=Ada]').waitFor();
    await bob.page.getByText('2 here').waitFor();
    await ada.page.getByLabel('Add a card: To do').fill('Buy <b>tea</b>');
    await ada.page.keyboard.press('Enter');
    await lane(bob.page, 'To do').getByText('Buy <b>tea</b>').waitFor();
    // By the dialog, which works with keys and on a phone.
    await ada.page.getByRole('button', { name: 'Buy <b>tea</b>' }).click();
    await ada.page.getByLabel('Text').fill('Buy tea and milk');
    await ada.page.getByLabel('Lane').selectOption('Doing');
    await ada.page.getByRole('button', { name: 'Save', exact: true }).click();
    await lane(bob.page, 'Doing').getByText('Buy tea and milk').waitFor();
    // By dragging.
    const card = ada.page.getByRole('button', { name: 'Buy tea and milk' });
    await card.dragTo(lane(ada.page, 'Done').locator('h2'));
    await lane(bob.page, 'Done').getByText('Buy tea and milk').waitFor();
    assert.equal(await lane(bob.page, 'Done').locator('.card span').first().textContent(), 'Buy tea and milk');
    await card.click();
    await ada.page.getByRole('button', { name: 'Remove' }).click();
    await bob.page.getByText('Buy tea and milk').waitFor({ state: 'detached' });
    await ada.page.getByRole('button', { name: 'Sign out' }).click();
    await ada.page.getByRole('button', { name: 'Sign in to change it' }).waitFor();
    await ada.context.close();
    await bob.page.getByText('Only you are here').waitFor();
    await bob.context.close();
  }));

test('the charts of a survey move while others answer', () =>
  withTemplate('survey', async ({ open, dev }) => {
    const [results, visitor] = [await open('survey-results'), await open('survey')];
    await results.page.locator('#place .bar').first().waitFor();
    assert.equal(await results.page.locator('#answers').textContent(), '12');
    await visitor.page.getByLabel('outside').check();
    await visitor.page.locator('.scale label').filter({ hasText: '2' }).click();
    await visitor.page.getByLabel('Because').fill('No <i>meetings</i>.');
    await visitor.page.getByRole('button', { name: 'Send' }).click();
    await visitor.page.getByText('Thank you!').waitFor();
    await results.page.getByText('No <i>meetings</i>.').waitFor();
    await results.page.waitForFunction(() => document.querySelector('#answers').textContent === '13');
    const chart = results.page.getByRole('img', { name: /outside: 2/ });
    await chart.waitFor();
    assert.deepEqual([...results.faults, ...visitor.faults], []);
    // Agents have the same by tools.
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const answer = await fetch(`${dev.server}/survey/mcp`, { method: 'POST', headers, body: JSON.stringify(call) });
    const { result } = await answer.json();
    assert.deepEqual(result.tools.map(({ name }) => name).sort(), ['answer', 'comments', 'counts', 'summary']);
    await results.context.close();
    await visitor.context.close();
  }));

test('the pages of the docs lead to each other', () =>
  withTemplate('docs', async ({ open }) => {
    const { page, context, faults } = await open('handbook');
    for (const [link, heading] of [
      ['Getting started', 'Getting started'],
      ['how the parts fit', 'Architecture'],
      ['Back to the handbook', 'Handbook'],
      ['Questions', 'Questions'],
    ]) {
      await page.getByRole('link', { name: link }).first().click();
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    }
    assert.deepEqual(faults, []);
    await context.close();
  }));

test('an open page shows each save by itself, once, and finds a server that starts again', () =>
  withTemplate('guest-book', async ({ folder, dev, open }) => {
    const { page, context } = await open('book');
    let loads = 0;
    page.on('load', () => (loads += 1));
    const source = await folder.read('book.html');
    await page.locator('article').waitFor();
    await mark(page);
    await folder.write('book.html', source.replace('You were here. Say so.', 'Saved once.'));
    await waitForReload(page);
    assert.equal(await page.locator('header p').textContent(), 'Saved once.');
    // An action counts as a change of every page.
    await mark(page);
    await folder.write('actions/latest.sql', "SELECT id, name, upper(message) AS message, created_at FROM entries ORDER BY id DESC");
    await waitForReload(page);
    await page.getByText('WELCOME!').waitFor();
    assert.equal(loads, 2);
    // Another start at the same address, with the same pages, is no reason to load; a change while it was gone is one.
    await dev.stop();
    const again = await startDev(folder);
    assert.deepEqual(again.pages, dev.pages);
    await mark(page);
    await page.waitForTimeout(2500);
    assert.equal(loads, 2);
    await again.stop();
    await folder.write('book.html', source);
    const last = await startDev(folder);
    try {
      await waitForReload(page);
      assert.equal(await page.locator('header p').textContent(), 'You were here. Say so.');
      assert.equal(loads, 3);
    } finally {
      await last.stop();
      dev.stop = async () => {};
    }
    await context.close();
  }));
