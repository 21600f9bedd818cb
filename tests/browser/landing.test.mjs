// The landing page, as a person uses it: a page typed, looked at, published, opened; what fails, and what it must not be.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser } from './lib/browser.mjs';
import { inspect } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

const WELCOME = 'welcome.localhost';
let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc({ options: ['--landing-host', WELCOME] }), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens the landing page of a server. */
async function open({ server = svc, url = server.url, origin = server.url, ...options } = {}) {
  const opened = await openPage(browser, origin, options);
  const { page } = opened;
  await page.goto(`${url}/`);
  return {
    ...opened,
    content: page.getByLabel('Content'),
    preview: page.frameLocator('iframe:not(.coming)'),
    publish: page.getByRole('button', { name: 'Publish' }),
    link: page.getByLabel('Link to the page'),
    choose: (type) => page.getByLabel(type, { exact: true }).check(),
  };
}

test('what is typed is looked at, published, copied and opened', async () => {
  const { page, context, faults, content, preview, publish, link } = await open();
  try {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await content.fill('# Lanterns\n\nThey *shine*.');
    await preview.getByRole('heading', { name: 'Lanterns' }).waitFor();
    assert.equal(await preview.locator('em').textContent(), 'shine');
    const looked = await preview.locator('main').innerHTML();
    await page.getByLabel('Title').fill('All about lanterns');
    await page.getByLabel('Address').fill('lanterns');
    await publish.click();
    await page.getByRole('heading', { name: 'It is published' }).waitFor();
    assert.equal(await link.inputValue(), `${svc.url}/lanterns`);
    const end = Date.parse(await page.locator('#expires').getAttribute('datetime'));
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
    await page.getByText('“lanterns” was taken, so it is “lanterns-2”.').waitFor();
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

test('a share with a password that can be opened once', async () => {
  const { page, context, content, publish, link } = await open();
  try {
    await content.fill('# For one');
    await page.getByLabel('Password').fill(' open sesame ');
    await page.getByLabel('Can be opened only once').check();
    await publish.click();
    await link.waitFor();
    await page.goto(await link.inputValue());
    await page.getByLabel('Password').fill(' open sesame ');
    await page.getByRole('button').click();
    await page.getByRole('button', { name: 'Open it now' }).click();
    await page.getByRole('heading', { name: 'For one' }).waitFor();
    assert.equal((await page.goto(page.url())).status(), 404);
  } finally {
    await context.close();
  }
});

test('a file is opened as what it is', async () => {
  const { page, context, content, preview } = await open();
  try {
    const file = { name: 'table.csv', mimeType: 'text/csv', buffer: Buffer.from('x,y\n1,2') };
    await page.getByLabel('Open a file').setInputFiles(file);
    await preview.locator('tbody').waitFor();
    assert.equal(await content.inputValue(), 'x,y\n1,2');
    assert.equal(await page.getByLabel('CSV').isChecked(), true);
  } finally {
    await context.close();
  }
});

test('a mistake is named while one types and when one publishes, and nothing typed is lost', async () => {
  const { page, context, content, preview, publish, choose } = await open({ width: 360 });
  try {
    await choose('JSON');
    await content.fill('{"a": 1}');
    await preview.locator('.tree').waitFor();
    await content.fill('{"a": x}');
    await page.locator('#hint').getByText('line 1, column 7').waitFor();
    assert.equal(await preview.locator('.tree').isVisible(), true, 'the last good preview stays');
    await page.getByLabel('Title').fill('A title');
    await publish.click();
    await page.getByRole('alert').getByText('line 1, column 7').waitFor();
    assert.equal(await content.inputValue(), '{"a": x}');
    assert.equal(await page.getByLabel('Title').inputValue(), 'A title');
    assert.deepEqual(await inspect(page), []);
    await shoot(page, 'landing-mistake-360');

    await context.setOffline(true);
    await publish.click();
    await page.getByRole('alert').getByText('cannot be reached').waitFor();
    await context.setOffline(false);
    await content.fill('{"a": 2}');
    await publish.click();
    await page.getByRole('heading', { name: 'It is published' }).waitFor();
    assert.equal(await page.getByRole('alert').textContent(), '');
  } finally {
    await context.close();
  }
});

test('a limit says how long to wait', async () => {
  const server = await startSvc({ limits: { deploy_burst: 1, deploy_per_minute: 1, preview_burst: 1, preview_per_minute: 1 } });
  const { page, context, content, preview, publish, link } = await open({ server });
  try {
    await content.fill('# One');
    await preview.getByText('One').waitFor();
    await content.fill('# Two');
    await page.locator('#hint').getByText('Try again in 60 seconds').waitFor();
    await publish.click();
    await link.waitFor();
    await publish.click();
    await page.getByRole('alert').getByText('Try again in 60 seconds').waitFor();
    assert.equal(await content.inputValue(), '# Two');
  } finally {
    await context.close();
    await server.stop();
  }
});

test('what is typed runs in an origin of its own, and reaches nothing', async () => {
  const { page, context, content, preview, choose } = await open();
  try {
    const dialogs = [];
    page.on('dialog', (dialog) => dialogs.push(dialog.dismiss()));
    await choose('HTML');
    await content.fill(`<!doctype html><title>x</title><p>nothing</p><script>
      const tries = {
        page: () => parent.document.body,
        cookie: () => document.cookie,
        storage: () => localStorage.length,
        top: () => { top.location = '/elsewhere'; },
      };
      const got = Object.entries(tries).filter(([, attempt]) => { try { attempt(); return true; } catch { return false; } });
      parent.postMessage({ html: '<h1>forged', top: '<h1>' }, '*');
      alert(1);
      document.querySelector('p').textContent = window.origin + ' got ' + (got.map(([name]) => name).join() || 'nothing');
    </script>`);
    await preview.getByText('null got nothing').waitFor();
    assert.equal(page.url(), `${svc.url}/`);
    assert.equal(await page.getByText('forged').count(), 0);
    assert.deepEqual(dialogs, []);
    const held = await context.storageState({ indexedDB: true });
    assert.deepEqual([held.cookies, held.origins], [[], []], 'the page keeps nothing');
  } finally {
    await context.close();
  }
});

test('a page scrolled to stays where it is while one types', async () => {
  const { page, context, content, preview } = await open();
  try {
    await content.fill('# Long\n\n' + 'words\n\n'.repeat(100));
    await preview.getByRole('heading', { name: 'Long' }).waitFor();
    await preview.locator('html').evaluate(() => scrollTo(0, 500));
    await page.waitForTimeout(100);
    await content.press('Control+End');
    await content.pressSequentially('the end');
    await preview.getByText('the end').waitFor();
    assert.equal(await preview.locator('html').evaluate(() => scrollY), 500);
    const back = await page.evaluate(() => history.length);
    assert.ok(back <= 2, `previews are no history to go back through: ${back}`);
  } finally {
    await context.close();
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

test('without scripts it says how to publish, and sends nothing anywhere', async () => {
  const { page, context, faults, content, publish } = await open({ scripts: false });
  try {
    assert.equal(await page.locator('noscript pre').isVisible(), true);
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await content.fill('secret');
    // Pressing waits for a navigation that never comes.
    await publish.click({ timeout: 1000 }).catch(() => {});
    assert.match(faults.join(), /form-action/, 'the form was pressed, and refused');
    assert.deepEqual(requests, []);
    assert.equal(page.url(), `${svc.url}/`);
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
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    assert.equal(await at(), 'content');
    await page.keyboard.type('<h1>By hand</h1>');
    const stops = [];
    while (stops.at(-1) !== 'send' && stops.length < 12) {
      await page.keyboard.press('Tab');
      stops.push(await at());
    }
    // The preview may be a stop of its own.
    assert.deepEqual(stops.filter(Boolean), ['title', 'name', 'password', 'one_time', 'send']);
    await page.keyboard.press('Enter');
    await link.waitFor();
    assert.equal(await at(), 'published', 'the result is told at once');
  } finally {
    await context.close();
  }
});

test('it is one small request', async () => {
  const { page, context, faults } = await openPage(browser, svc.url, { width: 360 });
  try {
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(`${svc.url}/`, { waitUntil: 'networkidle' });
    assert.deepEqual(requests.filter((url) => !url.includes('/favicon')), [`${svc.url}/`]);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});
