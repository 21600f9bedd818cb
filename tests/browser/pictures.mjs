// Takes the pictures of the landing page: what can be made, as it looks now. Run by `just screenshots`.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const folder = resolve(dirname(fileURLToPath(import.meta.url)), '../../host/assets/landing/pictures');
// Shown at 640 by 400 and less, and sharp on phones.
const viewport = { width: 960, height: 600 };
const deviceScaleFactor = 5 / 6;
const most = 24_000;

const note = `# Moving day

The van comes at **9:00**. Bring gloves, and something to drink.

\`\`\`mermaid
flowchart LR
  Pack --> Load --> Drive --> Unload
  Drive --> Lunch --> Unload
\`\`\`

| room | boxes | who | done |
|---|---:|---|---|
| kitchen | 14 | Ada | yes |
| study | 22 | Grace | nearly |

- [x] Van booked
- [ ] Keys handed over
`;

const poll = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tea or coffee?</title>
<style>
  :root { color-scheme: light dark }
  body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; font: 1.25rem/1.5 system-ui, sans-serif }
  h1 { margin: 0 0 1.5rem; font-size: 2.4rem; letter-spacing: -.02em }
  button { margin: 0 .75rem 2rem 0; padding: .6rem 1.6rem; border: 0; border-radius: 2rem; font: inherit; color: #fff; background: #0a6b58 }
  button + button { background: #7a4a1c }
  label { display: grid; grid-template-columns: 5rem 1fr 2rem; gap: 1rem; align-items: center; margin-bottom: .75rem }
  progress { width: 100%; height: 1.4rem; accent-color: #0a6b58 }
  p { opacity: .7 }
</style>
<h1>Tea or coffee?</h1><button>tea</button><button>coffee</button><div></div><p>Everybody who looks sees each vote at once.</p>
<script>
  const bars = document.querySelector('div');
  svc.db.live('counts', {}, ({ rows }) => {
    const most = Math.max(...rows.map(({ n }) => n));
    bars.replaceChildren(...rows.map(({ choice, n }) => {
      const line = document.createElement('label');
      line.append(choice, Object.assign(document.createElement('progress'), { max: most, value: n }), n);
      return line;
    }));
  });
  for (const button of document.querySelectorAll('button')) button.onclick = () => svc.db.op('vote', { choice: button.textContent });
</script>
</html>`;

const prices = [
  'Lamp,Made of,Height,Price,In stock since',
  'Harbour,copper,40 cm,180.00,2026-03-02',
  'Moth,paper,12 cm,12.50,2026-05-11',
  'Signal,brass,35 cm,140.00,2026-01-20',
  'Paper boat,paper,9 cm,9.80,2026-06-30',
  'Lantern No. 4,copper,28 cm,96.00,2026-02-14',
  'Firefly,glass,18 cm,54.00,2026-08-01',
  'Storm,brass,31 cm,128.00,2026-04-18',
  'Kettle light,copper,22 cm,75.00,2026-09-09',
].join('\n');

/** Makes a project with a poll and its database, and one with a table. */
async function publishPages(svc) {
  const ask = await svc.owner('acme');
  const voting = await ask('POST', '', { name: 'Poll' });
  const table = "CREATE TABLE votes (id INTEGER PRIMARY KEY, choice TEXT NOT NULL CHECK (choice IN ('tea', 'coffee')))";
  await ask('POST', `/${voting.id}/backend`, { ddl: table });
  await ask('PUT', `/${voting.id}/backend/actions`, {
    actions: [
      { name: 'counts', sql: 'SELECT choice, count(*) AS n FROM votes GROUP BY choice ORDER BY n DESC' },
      { name: 'vote', sql: 'INSERT INTO votes (choice) VALUES (:choice)' },
    ],
  });
  const app = await ask('POST', `/${voting.id}/frontends`, { type: 'html', content: poll, requested_slug: 'poll' });
  for (const choice of [...Array(9).fill('tea'), ...Array(6).fill('coffee')]) {
    await fetch(`${svc.url}/poll/api/op`, { method: 'POST', body: JSON.stringify({ action: 'vote', params: { choice } }) });
  }
  // A plan limits the projects of a workspace: the shop is another one's.
  const trade = await svc.owner('shop');
  const shop = await trade('POST', '', { name: 'Lamps' });
  const list = { type: 'csv', title: 'Lamps, and what they cost', content: prices, requested_slug: 'prices' };
  const project = await trade('POST', `/${shop.id}/frontends`, list);
  const page = await svc.deploy({ type: 'markdown', content: note, name: 'moving-day' });
  return { page: page.url, app: app.url, project: project.url };
}

const settle = {
  page: (page) => page.locator('svg').waitFor(),
  app: (page) => page.locator('progress').nth(1).waitFor(),
  async project(page) {
    await page.getByRole('columnheader', { name: 'Price' }).getByRole('button').click();
    await page.getByLabel('Filter by').selectOption('Price');
    await page.getByLabel('Condition').fill('< 130');
    await page.getByText('6 of 8 rows').waitFor();
    await page.evaluate(() => document.activeElement.blur());
  },
};

const svc = await startSvc();
const browser = await startBrowser();
try {
  const urls = await publishPages(svc);
  for (const [name, url] of Object.entries(urls)) {
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({ viewport, deviceScaleFactor, colorScheme });
      const page = await context.newPage();
      await page.goto(url);
      await settle[name](page);
      await page.evaluate(() => document.fonts.ready);
      const session = await context.newCDPSession(page);
      const shot = await session.send('Page.captureScreenshot', { format: 'webp', quality: 60 });
      const bytes = Buffer.from(shot.data, 'base64');
      const file = `${name}${colorScheme === 'dark' ? '-dark' : ''}.webp`;
      if (bytes.length > most) throw new Error(`${file} has ${bytes.length} bytes`);
      const before = await readFile(join(folder, file)).catch(() => Buffer.alloc(0));
      if (!before.equals(bytes)) await writeFile(join(folder, file), bytes);
      console.log(`${file}: ${bytes.length} bytes`);
      await context.close();
    }
  }
} finally {
  await browser.close();
  await svc.stop();
}
