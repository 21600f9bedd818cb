// What the form of the landing page takes: words whose type is guessed, files, and what it does not take.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { shoot } from './lib/browser.mjs';
import { inspect } from './lib/inspect.mjs';
import { startLanding } from './lib/landing.mjs';
import { startSvc } from './lib/svc.mjs';

let svc, open, stop;

before(async () => {
  ({ svc, open, stop } = await startLanding());
});

after(() => stop?.());

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
    const zip = { name: 'files.zip', mimeType: 'application/zip', buffer: Buffer.from([0x50, 0x4b, 0xff, 0]) };
    await page.getByLabel('Open a file').setInputFiles(zip);
    await alert.getByText('files.zip is not text').waitFor();
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
