// Takes the pictures of the documents: what a newcomer wants to see, as it looks now. Run by `just screenshots`.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser } from './lib/browser.mjs';
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

const pictures = {
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
  for (const [name, show] of Object.entries(pictures)) {
    const context = await browser.newContext({ viewport: size, deviceScaleFactor: 1 });
    const page = await context.newPage();
    await show(page, svc);
    await page.evaluate(() => document.fonts.ready);
    const session = await context.newCDPSession(page);
    const shot = await session.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
    const bytes = Buffer.from(shot.data, 'base64');
    if (bytes.length > most) throw new Error(`${name} has ${bytes.length} bytes`);
    const path = join(folder, `${name}.webp`);
    const before = await readFile(path).catch(() => Buffer.alloc(0));
    if (!before.equals(bytes)) await writeFile(path, bytes);
    console.log(`${name}: ${bytes.length} bytes`);
    await context.close();
  }
} finally {
  await browser.close();
  await svc.stop();
}
