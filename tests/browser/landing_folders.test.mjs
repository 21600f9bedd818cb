// Folders and files that the form of the landing page takes as they are: dropped, chosen and pasted.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { shoot } from './lib/browser.mjs';
import { inspect } from './lib/inspect.mjs';
import { startLanding } from './lib/landing.mjs';

let svc, open, stop, root;

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Makes a folder of files below a temporary one; returns its path. */
async function folder(name, files) {
  for (const [path, words] of Object.entries(files)) {
    const file = join(root, name, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, words);
  }
  return join(root, name);
}

/** Drops files and folders of this machine upon the page, as a person does. */
async function drop(page, files) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files, dragOperationsMask: 1 };
  const { x, y } = await page.locator('h1').boundingBox();
  for (const type of ['dragEnter', 'dragOver', 'drop']) {
    await session.send('Input.dispatchDragEvent', { type, x: x + 5, y: y + 5, data });
  }
  await session.detach();
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-folders-'));
  ({ svc, open, stop } = await startLanding());
});

after(async () => {
  await stop?.();
  await rm(root, { recursive: true, force: true });
});

test('a folder is dropped, published, opened and taken out', async () => {
  const garden = await folder('garden', {
    'index.html': '<!doctype html><html lang=en><title>Garden</title><link rel=stylesheet href=css/a.css><h1>Beans</h1><img src=img/dot.png alt=dot>',
    'css/a.css': 'h1 { color: rgb(1, 2, 3) }',
    'img/dot.png': PNG,
    '.env': 'SECRET=1',
    '.git/config': 'x',
    '.well-known/security.txt': 'Contact: us',
    'node_modules/left/pad.js': 'x',
  });
  const { page, context, faults, content, publish, link } = await open();
  try {
    await content.fill('What was typed');
    await drop(page, [garden]);
    const held = page.locator('#held-said');
    await held.getByText('garden: 4 files').waitFor();
    await held.getByText('3 left out').waitFor();
    assert.equal(await content.isVisible(), false);
    assert.deepEqual(await inspect(page), []);
    await shoot(page, 'landing-folder');
    await publish.click();
    await page.getByRole('heading', { name: 'Published' }).waitFor();
    const url = await link.inputValue();
    const [site] = await Promise.all([context.waitForEvent('page'), page.locator('#open').click()]);
    await site.getByRole('heading', { name: 'Beans' }).waitFor();
    const shown = await site.evaluate(() => [
      getComputedStyle(document.querySelector('h1')).color,
      document.querySelector('img').naturalWidth,
      document.title,
    ]);
    assert.deepEqual(shown, ['rgb(1, 2, 3)', 1, 'Garden']);
    for (const [path, status] of [['.env', 404], ['.git/config', 404], ['node_modules/left/pad.js', 404], ['.well-known/security.txt', 200]]) {
      assert.equal((await fetch(`${url}/${path}`)).status, status, path);
    }
    await page.getByRole('button', { name: 'Take it out' }).click();
    assert.equal(await content.inputValue(), 'What was typed', 'what was typed stays');
    assert.equal(await content.isVisible(), true);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
});

test('limits are said before anything is sent', async () => {
  const { page, context, publish, options } = await open();
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  try {
    const alert = page.locator('#wrong');
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, number) => [`${number}.txt`, 'x']));
    await drop(page, [await folder('many', many)]);
    await alert.getByText('A share has 100 files at most, and many has more').waitFor();
    await drop(page, [await folder('large', { 'a.txt': 'x'.repeat(600_000), 'b.txt': 'x'.repeat(600_000) })]);
    await alert.getByText('A share has 1 MB at most, and large has more').waitFor();
    await drop(page, [await folder('binary', { 'a.bin': Buffer.alloc(900_000, 0xff) })]);
    await alert.getByText('A share has 1 MB at most as it is sent, and binary has 1.2 MB').waitFor();
    await mkdir(join(root, 'empty'));
    await drop(page, [join(root, 'empty')]);
    await alert.getByText('empty has no files').waitFor();
    await drop(page, [await folder('small', { 'a.txt': 'x' })]);
    await page.locator('#held-said').getByText('It has no index.html').waitFor();
    await options();
    await page.locator('#password').fill('secret');
    await alert.getByText('Only a page can have a password').waitFor();
    await publish.click();
    assert.deepEqual(requests.filter((url) => url.endsWith('/deploy')), []);
    await page.locator('#password').fill('');
    assert.equal(await alert.textContent(), '');
  } finally {
    await context.close();
  }
});

for (const [name, kind] of [['photo.png', 'img'], ['film.mp4', 'video'], ['paper.pdf', 'a']]) {
  test(`${name} is shared as it is, by hand, by drop and by paste`, async () => {
    const file = join(await folder('media', { [name]: PNG }), name);
    const { page, context, publish, link } = await open();
    try {
      const check = async () => {
        await page.locator('#held-said').getByText(`${name}, 1 KB, is shared as it is.`).waitFor();
      };
      await page.getByLabel('Open a file').setInputFiles(file);
      await check();
      await page.reload();
      await drop(page, [file]);
      await check();
      await page.reload();
      await page.evaluate(([name, words]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(words)], name));
        document.querySelector('#content').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
      }, [name, [...PNG]]);
      await check();
      await publish.click();
      await page.getByRole('heading', { name: 'Published' }).waitFor();
      await page.goto(await link.inputValue());
      assert.equal(await page.title(), name);
      const shown = page.locator(`figure ${kind}`).first();
      if (kind === 'img') assert.equal(await shown.evaluate((picture) => picture.decode().then(() => picture.naturalWidth)), 1);
      if (kind !== 'a') {
        await page.getByRole('link', { name }).click();
        await page.waitForURL(`**/${name}`);
        return;
      }
      const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: `Download ${name}` }).click()]);
      assert.equal(saved.suggestedFilename(), name);
    } finally {
      await context.close();
    }
  });
}

test('a folder is chosen, and its paths are those in it', async () => {
  const garden = await folder('chosen', { 'index.html': '<title>Chosen</title>', 'a/b.txt': 'b', '.env': 'x' });
  const { page, context, publish, link } = await open();
  try {
    await page.getByLabel('Open a folder').setInputFiles(garden);
    await page.locator('#held-said').getByText('chosen: 2 files').waitFor();
    await publish.click();
    await page.getByRole('heading', { name: 'Published' }).waitFor();
    const url = await link.inputValue();
    assert.equal(await (await fetch(`${url}/a/b.txt`)).text(), 'b');
    assert.equal((await fetch(`${url}/.env`)).status, 404);
    assert.equal(new URL(url).origin, svc.url);
  } finally {
    await context.close();
  }
});
