// The landing page, as a person uses it: a page typed, looked at, published, opened; what fails, and what it must not be.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser } from './lib/browser.mjs';
import { inspect, inspectFit } from './lib/inspect.mjs';
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
    options: () => page.locator('summary').click(),
  };
}

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

test('a preview is never one of another type', async () => {
  const { page, context, content, preview, choose } = await open();
  try {
    await content.fill('- one\n- two');
    await preview.locator('li').first().waitFor();
    // Whatever is asked for is answered late: what was shown before must not wait for it.
    await page.route('**/_svc/preview', async (route) => {
      await new Promise((wake) => setTimeout(wake, 1500));
      await route.continue().catch(() => {});
    });
    await choose('CSV');
    assert.equal(await page.locator('#preview iframe').count(), 0);
    await page.waitForTimeout(600);
    await choose('JSON');
    await page.locator('#preview .wrong').waitFor();
    assert.equal(await page.locator('#preview iframe').count(), 0, 'the table that was asked for is not shown');
    await page.unroute('**/_svc/preview');
    await content.fill('[1, 2]');
    await preview.locator('.tree').waitFor();
  } finally {
    await context.close();
  }
});

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

for (const [words, type, guess] of [
  ['<!doctype html><p>x', 'HTML', 'HTML'],
  ['{"a": [1]}', 'JSON', 'JSON'],
  ['name;age\nAda;36\nAlan;41', 'CSV', 'a table'],
  ['sequenceDiagram\n  A->>B: hi', 'Mermaid', 'a Mermaid diagram'],
]) {
  test(`${type} is guessed, said, and can be put right`, async () => {
    const { page, context, content, choose } = await open();
    try {
      await content.fill(words);
      assert.equal(await page.getByLabel(type, { exact: true }).isChecked(), true);
      await page.locator('#guess').getByText(`It looks like ${guess}`).waitFor();
      await choose('Markdown');
      await content.fill(`${words}\n`);
      assert.equal(await page.getByLabel('Markdown').isChecked(), true, 'what one has chosen stays');
    } finally {
      await context.close();
    }
  });
}

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

const files = {
  'table.csv': ['x,y\n1,2', 'CSV', 'x,y\n1,2', 'table.csv is a table (CSV).'],
  'hello.py': ['def f(__name__):\n    pass  # yes', 'Markdown', '```python\ndef f(__name__):\n    pass  # yes\n```\n', 'hello.py is shown as code.'],
  'a.mmd': ['flowchart LR\n a --> b', 'Mermaid', 'flowchart LR\n a --> b', 'a.mmd is a Mermaid diagram.'],
};

for (const [name, [words, type, source, said]] of Object.entries(files)) {
  test(`${name} is taken by hand, by drop and by paste`, async () => {
    const { page, context, faults, content, options } = await open();
    try {
      const check = async () => {
        await page.locator('#guess').getByText(said).waitFor();
        assert.equal(await content.inputValue(), source);
        assert.equal(await page.getByLabel(type, { exact: true }).isChecked(), true);
        assert.equal(await page.getByLabel('Title').inputValue(), name);
      };
      await options();
      await page.getByLabel('Open a file').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(words) });
      await check();
      for (const kind of ['drop', 'paste']) {
        await page.reload();
        await options();
        await content.fill('');
        await page.evaluate(([kind, name, words]) => {
          const data = new DataTransfer();
          data.items.add(new File([words], name));
          const event = kind === 'drop'
            ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
          document.querySelector(kind === 'drop' ? 'h1' : '#content').dispatchEvent(event);
          if (!event.defaultPrevented) throw new Error('the browser would have taken it');
        }, [kind, name, words]);
        await check();
      }
      assert.equal(page.url(), `${svc.url}/`);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  });
}

test('what is no page is said before it is published', async () => {
  const { page, context, content, publish } = await open();
  try {
    const alert = page.locator('#wrong');
    const png = { name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0]) };
    await page.getByLabel('Open a file').setInputFiles(png);
    await alert.getByText('photo.png is not text').waitFor();
    assert.equal(await content.inputValue(), '');
    await content.fill('x');
    assert.equal(await alert.textContent(), '', 'it goes with the next try');
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await content.fill('   ');
    await publish.click();
    await alert.getByText('There is nothing to publish yet').waitFor();
    await content.fill('x'.repeat(1_100_000));
    await alert.getByText('A page may have 1 MB; this has 1.1 MB.').waitFor();
    await publish.click();
    assert.deepEqual(requests.filter((url) => url.endsWith('/deploy')), []);
    await content.fill('short');
    assert.equal(await alert.textContent(), '');
    const large = { name: 'large.md', mimeType: 'text/plain', buffer: Buffer.alloc(2_400_000, 'a') };
    await page.getByLabel('Open a file').setInputFiles(large);
    await alert.getByText('large.md has 2.3 MB').waitFor();
    assert.equal(await content.inputValue(), 'short', 'what was there stays');
  } finally {
    await context.close();
  }
});

test('a mistake is named while one types and when one publishes, and nothing typed is lost', async () => {
  const { page, context, content, preview, publish, choose, options } = await open({ width: 360 });
  try {
    await options();
    await choose('JSON');
    await content.fill('{"a": 1}');
    await preview.locator('.tree').waitFor();
    await content.fill('{"a": x}');
    await page.locator('#preview').getByText('line 1, column 7').waitFor();
    assert.equal(await page.locator('#preview iframe').count(), 0, 'what is shown is not what would be published');
    await page.getByLabel('Title').fill('A title');
    await publish.click();
    await page.locator('#wrong').getByText('line 1, column 7').waitFor();
    assert.equal(await content.inputValue(), '{"a": x}');
    assert.equal(await page.getByLabel('Title').inputValue(), 'A title');
    assert.deepEqual(await inspect(page), []);
    await shoot(page, 'landing-mistake-360');

    await context.setOffline(true);
    await publish.click();
    await page.locator('#wrong').getByText('cannot be reached').waitFor();
    await context.setOffline(false);
    await content.fill('{"a": 2}');
    assert.equal(await page.locator('#wrong').textContent(), '', 'what is mended is not complained of');
    await publish.click();
    await page.getByRole('heading', { name: 'Published' }).waitFor();
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
    await page.locator('#preview').getByText('Wait a minute').waitFor();
    await publish.click();
    await link.waitFor();
    await publish.click();
    await page.locator('#wrong').getByText('Wait a minute').waitFor();
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
    assert.deepEqual([held.cookies, held.origins], [[], []], 'the page keeps nothing but the draft of its tab');
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

test('without scripts the form publishes, and takes back', async () => {
  for (const scheme of ['light', 'dark']) {
    const { page, context, faults, content, publish } = await open({ scripts: false, width: 360, scheme });
    try {
      assert.equal(await page.getByText('Open a file').isVisible(), false, 'what needs scripts is not there');
      assert.equal(await page.locator('#preview').isVisible(), false);
      await shoot(page, `landing-without-scripts-${scheme}-360`);
      await content.fill('# By *hand*\n\nTwo lines');
      await page.locator('summary').click();
      await page.getByLabel('Password', { exact: false }).first().fill('sesame');
      await page.getByLabel('Delete it once it has been opened').check();
      await publish.click();
      await page.getByRole('heading', { name: 'Published' }).waitFor();
      await page.getByText('do not open it yourself').waitFor();
      assert.equal(await page.getByLabel('Password of the page').inputValue(), 'sesame');
      const url = await page.getByLabel('Link to the page').inputValue();
      await shoot(page, `landing-published-without-scripts-${scheme}-360`);
      assert.deepEqual(await inspectFit(page), []);
      assert.equal(await fetch(url).then(({ status }) => status), 401);
      await page.getByRole('button', { name: 'Delete it' }).click();
      await page.getByRole('heading', { name: 'Deleted' }).waitFor();
      assert.equal(await fetch(url).then(({ status }) => status), 404);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  }
});

test('the landing host publishes without scripts, too', async () => {
  const welcome = svc.url.replace('localhost', WELCOME);
  const { page, context, content, publish } = await open({ url: welcome, origin: welcome, scripts: false });
  try {
    await content.fill('# From afar');
    await publish.click();
    await page.getByRole('link', { name: 'Open the page' }).click();
    await page.getByRole('heading', { name: 'From afar' }).waitFor();
  } finally {
    await context.close();
  }
});

test('a page is reported by a form', async () => {
  await svc.deploy({ content: 'x', name: 'suspect' });
  for (const scheme of ['light', 'dark']) {
    const { page, context, faults } = await openPage(browser, svc.url, { width: 360, scheme });
    try {
      await page.goto(`${svc.url}/_svc/report/suspect`);
      assert.deepEqual(await inspect(page), []);
      await shoot(page, `report-${scheme}-360`);
      await page.getByLabel('Page', { exact: false }).first().fill('nowhere');
      await page.getByLabel('It spreads harmful software').check();
      await page.getByRole('button', { name: 'Send the report' }).click();
      await page.getByRole('alert').getByText('There is no such page').waitFor();
      await page.getByLabel('Page', { exact: false }).first().fill('suspect');
      await page.getByLabel('It spreads harmful software').check();
      await page.getByLabel('In your words').fill(`Words in ${scheme}`);
      await page.getByRole('button', { name: 'Send the report' }).click();
      await page.getByRole('heading', { name: 'Thank you' }).waitFor();
      assert.deepEqual(await inspect(page), []);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  }
  const { reports } = await svc.operate('report', 'list');
  assert.deepEqual(reports.map(({ reason, contact }) => [reason, contact]), [['malware', null], ['malware', null]]);
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
