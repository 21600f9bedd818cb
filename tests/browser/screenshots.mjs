// Takes the pictures of the documents: what a newcomer wants to see, as it looks now. Run by `just screenshots`;
// names of pictures as arguments have only those taken.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser } from './lib/browser.mjs';
import { button, field, makeShop, settle, startConsole } from './lib/console.mjs';
import { initFolder, startDev } from './lib/dev.mjs';
import { startSvc } from './lib/svc.mjs';

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../../docs/images');
const size = { width: 1200, height: 760 };
// A picture in a document is looked at in passing.
const most = 60_000;

const note = `---
title: Moving day
---
# Moving day

The van comes at **9:00**. Bring gloves.

> [!TIP]
> Take a picture of each box before you close it.

| room | boxes | who |
|---|---:|---|
| kitchen | 14 | Ada |
| study | 22 | Grace |

\`\`\`mermaid
flowchart LR
  Pack --> Load --> Drive --> Unload
  Drive --> Lunch --> Unload
\`\`\`

- [x] Van booked
- [ ] Keys handed over
`;

/** Serves a template, and shows one of its pages; answers how to end it. */
async function showTemplate(page, template, slug, prepare = async () => {}) {
  const folder = await initFolder(template);
  const dev = await startDev(folder);
  await prepare(dev);
  await page.goto(dev.pages[slug]);
  return async () => {
    await page.goto('about:blank');
    await dev.stop();
    await folder.remove();
  };
}

/** Signs in at the provider of development. */
async function signIn(page, url, name) {
  await page.goto(url);
  await page.getByRole('button', { name: 'Sign in to change it' }).click();
  await page.fill('[name=name]', name);
  await page.fill('[name=email]', `${name.toLowerCase()}@example.com`);
  await page.locator('button:not([name=cancel])').first().click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

/** Shows a screen of the console, of a project with some rows and a draft; answers how to end it. */
async function showConsole(page, place) {
  const service = await startConsole();
  const shop = await makeShop(service, 'Harbour café');
  const at = `${shop.at}/frontends/${shop.page.slug}`;
  const base = (await service.ask('GET', `${at}/revisions`)).active_revision_id;
  const content = '# Harbour\n\nOpen from ten to six.\n\nOn Mondays we bake.\n';
  const draft = await service.ask('POST', `${at}/revisions`, { base_revision_id: base, content, message: 'Winter hours' });
  for (const text of ['A table for four, please', 'Do you have oat milk?', 'The cardamom buns!', 'See you on Sunday']) {
    await service.ask('POST', `${shop.at}/backend/batch`, { ops: [{ action: 'sign', params: { text } }] });
  }
  await page.goto(`${service.origin}/login`);
  await field(page, 'Key').fill(service.keys.owner);
  await button(page, 'Sign in with key').click();
  await page.getByRole('heading', { level: 1, name: 'Projects' }).waitFor();
  await page.goto(`${service.origin}${place({ ...shop, draft: draft.revision.revision_id })}`);
  await settle(page);
  return () => service.stop();
}

const entries = [
  ['Grace', 'The most dangerous phrase is: we have always done it this way.'],
  ['Linus', 'Works on my machine. And, apparently, on yours.'],
  ['Noor', 'Greetings from a very slow train. The view makes up for it.'],
];

const pictures = {
  'folder-blank': (page) => showTemplate(page, 'blank', 'home'),
  async 'folder-guest-book'(page) {
    const end = await showTemplate(page, 'guest-book', 'book', async ({ server }) => {
      for (const [name, message] of entries) {
        const body = JSON.stringify({ action: 'sign', params: { name, message } });
        await fetch(`${server}/book/api/op`, { method: 'POST', body });
      }
    });
    await page.locator('article').nth(3).waitFor();
    return end;
  },
  async 'folder-board'(page) {
    const others = await Promise.all(['Grace', 'Noor'].map(async (name) => ({ name, page: await browser.newPage() })));
    const end = await showTemplate(page, 'board', 'board', async ({ pages }) => {
      for (const other of others) await signIn(other.page, pages.board, other.name);
      await signIn(page, pages.board, 'Ada');
    });
    await page.locator('.face[title=Noor]').waitFor();
    await page.locator('.face[title=Grace]').waitFor();
    return async () => {
      for (const other of others) await other.page.close();
      await end();
    };
  },
  async 'folder-survey'(page) {
    const end = await showTemplate(page, 'survey', 'survey-results');
    await page.locator('li').first().waitFor();
    await page.waitForTimeout(800);
    return end;
  },
  'folder-docs': (page) => showTemplate(page, 'docs', 'handbook'),
  async landing(page, svc) {
    await page.goto(`${svc.address}/`);
    await page.fill('#content', note.slice(note.indexOf('# Moving')));
    const preview = page.frameLocator('#preview iframe').getByText('Grace');
    await preview.waitFor();
    await page.evaluate(() => {
      document.activeElement.blur();
      document.querySelector('#content').scrollTo(0, 0);
      window.scrollTo(0, 0);
    });
  },
  async page(page, svc) {
    await svc.deploy({ type: 'markdown', name: 'moving-day', content: note });
    await page.goto(`${svc.address}/moving-day`);
  },
  async 'page-dark'(page, svc) {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(`${svc.address}/moving-day`);
  },
  'console-overview': (page) => showConsole(page, ({ path }) => path),
  'console-revision': (page) => showConsole(page, ({ path, page: { slug }, draft }) => `${path}/pages/${slug}/${draft}`),
  'console-data': (page) => showConsole(page, ({ path }) => `${path}/data?table=notes`),
  async guides(page, svc) {
    await page.goto(`${svc.address}/_svc/docs/`);
  },
};

// The pages say the address that README has.
const svc = await startSvc({ options: ['--base-url', 'http://localhost:8080'] });
svc.address = svc.url.replace('localhost', '127.0.0.1');
const browser = await startBrowser();
try {
  await mkdir(folder, { recursive: true });
  const wanted = process.argv.slice(2);
  for (const [name, show] of Object.entries(pictures)) {
    if (wanted.length && !wanted.includes(name)) continue;
    const context = await browser.newContext({ viewport: size, deviceScaleFactor: 1 });
    const page = await context.newPage();
    const end = await show(page, svc);
    await page.evaluate(() => document.fonts.ready);
    const session = await context.newCDPSession(page);
    const shot = await session.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
    const bytes = Buffer.from(shot.data, 'base64');
    if (bytes.length > most) throw new Error(`${name} has ${bytes.length} bytes`);
    const path = join(folder, `${name}.webp`);
    const before = await readFile(path).catch(() => Buffer.alloc(0));
    if (!before.equals(bytes)) await writeFile(path, bytes);
    console.log(`${name}: ${bytes.length} bytes`);
    await end?.();
    await context.close();
  }
} finally {
  await browser.close();
  await svc.stop();
}
