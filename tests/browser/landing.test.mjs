// The landing page, as a person uses it: a page typed, published, opened, passed on, and deleted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot } from './lib/browser.mjs';
import { inspect } from './lib/inspect.mjs';
import { WELCOME, startLanding } from './lib/landing.mjs';
import { startSvc } from './lib/svc.mjs';

let svc, browser, open, stop;

before(async () => {
  ({ svc, browser, open, stop } = await startLanding());
});

after(() => stop?.());

test('what is typed is looked at, published, copied and opened', async () => {
  const { page, context, faults, content, preview, publish, link, options } = await open();
  try {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await options();
    await content.fill('# Lanterns\n\nThey *shine*.');
    await preview.getByRole('heading', { name: 'Lanterns' }).waitFor();
    assert.equal(await preview.locator('em').textContent(), 'shine');
    const looked = await preview.locator('main').innerHTML();
    await page.getByLabel('Title').fill('All about lanterns');
    await page.getByLabel('Address').fill('lanterns');
    await publish.click();
    await page.getByRole('heading', { name: 'Published' }).waitFor();
    assert.equal(await link.inputValue(), `${svc.url}/lanterns`);
    const end = Date.parse(await page.locator('#expires time').getAttribute('datetime'));
    assert.ok(Math.abs(end - Date.now() - 7 * 86_400_000) < 600_000, 'it ends in seven days');
    assert.deepEqual(await inspect(page), []);
    await shoot(page, 'landing-published');
    await page.getByRole('button', { name: 'Copy the link' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${svc.url}/lanterns`);

    const [opened] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open the page' }).click(),
    ]);
    await opened.getByRole('heading', { name: 'Lanterns' }).waitFor();
    assert.equal(await opened.title(), 'All about lanterns');
    assert.equal(await opened.locator('main').innerHTML(), looked, 'the preview was what was published');

    await publish.click();
    await page.getByText('“lanterns” is not free, so it is “lanterns-2”.').waitFor();
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});

const kinds = {
  HTML: ['<!doctype html><title>x</title><h1>Mine</h1>', 'h1'],
  Mermaid: ['flowchart TD\n  A --> B', '.diagram'],
  JSON: ['{"a": [1, 2]}', '.tree'],
  CSV: ['a,b\n1,2', 'tbody td'],
};

for (const [kind, [source, shown]] of Object.entries(kinds)) {
  test(`${kind} is previewed and published`, async () => {
    const { page, context, faults, content, preview, publish, link, choose } = await open({ width: 360 });
    try {
      await choose(kind);
      await content.fill(source);
      await preview.locator(shown).first().waitFor();
      await publish.click();
      await link.waitFor();
      await page.goto(await link.inputValue());
      assert.equal(await page.locator(shown).first().isVisible(), true);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  });
}

test('a share with a password that can be opened once says so, and how to pass both on', async () => {
  const { page, context, content, publish, link, options } = await open();
  try {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await content.fill('# For one');
    await options();
    await page.getByLabel('Password', { exact: false }).first().fill(' open sesame ');
    await page.getByLabel('Expires after').selectOption('1 hour');
    await page.getByLabel('Delete it once it has been opened').check();
    await publish.click();
    await page.getByText('do not open it yourself').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Open the page' }).isVisible(), false, 'nothing leads there by mistake');
    const end = Date.parse(await page.locator('#expires time').getAttribute('datetime'));
    assert.ok(Math.abs(end - Date.now() - 3_600_000) < 600_000, 'it ends in an hour');
    await page.getByRole('button', { name: 'Copy the password' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ' open sesame ');
    assert.deepEqual(await inspect(page), []);
    await page.goto(await link.inputValue());
    await page.getByLabel('Password').fill(' open sesame ');
    await page.getByRole('button').click();
    await page.getByRole('button', { name: 'Open it now' }).click();
    await page.getByRole('heading', { name: 'For one' }).waitFor();
    const gone = await page.goto(page.url());
    assert.equal(gone.status(), 404);
    await page.getByText('could be opened only once').waitFor();
  } finally {
    await context.close();
  }
});

test('a share is deleted from its result and from the list of this browser', async () => {
  const { page, context, faults, content, publish, link, options } = await open({ width: 360 });
  try {
    const urls = [];
    await options();
    for (const title of ['First', 'Second']) {
      await content.fill(`# ${title}`);
      await page.getByLabel('Title').fill(title);
      await publish.click();
      await page.getByRole('link', { name: title }).waitFor();
      urls.push(await link.inputValue());
    }
    const status = (url) => fetch(url).then(({ status }) => status);
    assert.deepEqual(await page.locator('#shares a').allTextContents(), ['Second', 'First']);
    assert.deepEqual(await inspect(page), []);
    await shoot(page, 'landing-shares-360');
    const code = page.getByRole('img', { name: 'The link as a QR code' });
    assert.ok(await code.evaluate((image) => image.complete && image.naturalWidth > 0), 'the code is drawn');
    const button = page.locator('#delete');
    await button.click();
    assert.equal(await status(urls[1]), 200, 'it asks first');
    await button.click();
    await page.locator('#result').waitFor({ state: 'hidden' });
    assert.equal(await status(urls[1]), 404);
    // The other is known after a reload, too.
    await page.reload();
    const row = page.getByRole('listitem').filter({ hasText: 'First' });
    await row.getByRole('button').click();
    await row.getByRole('button', { name: 'Really delete?' }).click();
    await page.getByRole('heading', { name: 'Your shares' }).waitFor({ state: 'hidden' });
    assert.equal(await status(urls[0]), 404);
    assert.deepEqual(await page.evaluate(() => localStorage.getItem('svc-shares')), '[]');
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});

test('a link is passed on by what the device has for it', async () => {
  const { page, context, content, publish, link } = await open({ width: 360 });
  try {
    await page.addInitScript(() => {
      navigator.share = async ({ url }) => (window.passed = url);
    });
    await page.reload();
    await content.fill('# For a friend');
    await publish.click();
    await page.getByRole('button', { name: 'Pass it on' }).click();
    assert.equal(await page.evaluate(() => window.passed), await link.inputValue());
  } finally {
    await context.close();
  }
});

test('a draft survives a reload, but for its password', async () => {
  const { page, context, content, preview, options } = await open();
  try {
    await options();
    await content.fill('{"a": 1}');
    assert.equal(await page.getByLabel('JSON', { exact: true }).isChecked(), true);
    await page.getByLabel('Title').fill('A draft');
    await page.getByLabel('Password', { exact: false }).first().fill('sesame');
    await page.reload();
    await preview.locator('.tree').waitFor();
    assert.equal(await content.inputValue(), '{"a": 1}');
    assert.equal(await page.getByLabel('Title').inputValue(), 'A draft');
    assert.equal(await page.getByLabel('JSON', { exact: true }).isChecked(), true);
    assert.equal(await page.getByLabel('Password', { exact: false }).first().inputValue(), '');
    assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage }).includes('sesame')), false);
    await content.fill('');
    await page.reload();
    assert.equal(await content.inputValue(), '');
  } finally {
    await context.close();
  }
});

test('nothing is kept where owners have pages of the same origin', async () => {
  const server = await startSvc({ options: ['--base-url', 'http://127.0.0.1'] });
  const url = server.url.replace('localhost', '127.0.0.1');
  const { page, context, content, publish, link } = await open({ server, url, origin: url });
  try {
    await page.evaluate(() => localStorage.setItem('svc-shares', '[]'));
    await page.reload();
    assert.equal(await page.evaluate(() => localStorage.length), 0, 'what was kept before is gone');
    await content.fill('# Mine');
    await publish.click();
    await link.waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Your shares' }).isVisible(), true, 'the tab remembers');
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length]), [0, 0]);
    await page.reload();
    assert.equal(await page.getByRole('heading', { name: 'Your shares' }).isVisible(), false);
  } finally {
    await context.close();
    await server.stop();
  }
});

test('publishing is in view at once, on a desk and on a phone', async () => {
  for (const [width, height] of [[1280, 720], [360, 740]]) {
    const { page, context, publish } = await open({ width });
    try {
      await page.setViewportSize({ width, height });
      const { y, height: tall } = await publish.boundingBox();
      assert.ok(y >= 0 && y + tall <= height, `at ${y} of ${height}`);
    } finally {
      await context.close();
    }
  }
});

test('the landing host publishes on the API host', async () => {
  const welcome = svc.url.replace('localhost', WELCOME);
  const { page, context, faults, content, preview, publish, link } = await open({ url: welcome, origin: welcome });
  try {
    await content.fill('# From afar');
    await preview.getByRole('heading', { name: 'From afar' }).waitFor();
    await publish.click();
    await link.waitFor();
    assert.match(await link.inputValue(), new RegExp(`^${svc.url}/`));
    assert.deepEqual(faults.filter((fault) => fault !== `request to ${svc.url}`), []);
    await page.goto(await link.inputValue());
    await page.getByRole('heading', { name: 'From afar' }).waitFor();
  } finally {
    await context.close();
  }
});

test('the keyboard alone publishes', async () => {
  const { page, context, link } = await open();
  try {
    const at = () => page.evaluate(() => document.activeElement.name || document.activeElement.id);
    await page.keyboard.press('Tab');
    assert.equal(await at(), 'type');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getByLabel('HTML').isChecked(), true);
    // A file and a folder can be chosen in place of the text.
    for (let stop = 0; stop < 3; stop += 1) await page.keyboard.press('Tab');
    assert.equal(await at(), 'content');
    await page.keyboard.type('<h1>By hand</h1>');
    const stops = [];
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    while (stops.at(-1) !== 'send' && stops.length < 12) {
      await page.keyboard.press('Tab');
      stops.push(await at());
    }
    // The preview may be a stop of its own.
    assert.deepEqual(stops.filter(Boolean), ['title', 'name', 'password', 'expires_in', 'one_time', 'send']);
    await page.keyboard.press('Enter');
    await link.waitFor();
    assert.equal(await at(), 'published', 'the result is told at once');
  } finally {
    await context.close();
  }
});

test('it is one small request, and pictures once they come into view', async () => {
  const { page, context, faults } = await openPage(browser, svc.url, { width: 360 });
  try {
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`${svc.url}/`, { waitUntil: 'networkidle' });
    const [first, ...others] = requests.filter((url) => !url.includes('/favicon'));
    assert.equal(first, `${svc.url}/`);
    for (const url of others) assert.match(url, new RegExp(`^${svc.url}/_svc/pictures/\\w+\\.webp$`));
    const pictures = page.locator('.makes img');
    assert.equal(await pictures.count(), 3);
    for (const picture of await pictures.all()) {
      await picture.scrollIntoViewIfNeeded();
      await page.waitForFunction((image) => image.complete && image.naturalWidth > 0, await picture.elementHandle());
    }
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});
