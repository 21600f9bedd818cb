// Code is copied by a button where a page has our script, and is whole without.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, widths } from './lib/browser.mjs';
import { inspect, inspectFit } from './lib/inspect.mjs';
import { startWithPage } from './lib/project.mjs';

const fence = '```';
const code = 'fn main() {\n    println!("<hi> & bye");\n}\n';
const long = `let long = "${'word '.repeat(60)}";\n`;
const content = `# Code\n\n${fence}rust\n${code}${fence}\n\n- in a list:\n\n  ${fence}js\n  ${long}  ${fence}\n\nAnd \`inline\`.\n`;
let svc;
let browser;
let frontend;
let stop;

before(async () => {
  ({ svc, browser, frontend, stop } = await startWithPage('Notes', { type: 'markdown', content, requested_slug: 'code' }));
});

after(() => stop?.());

for (const width of widths) {
  for (const scheme of ['light', 'dark']) {
    test(`code is copied by a button at ${width} px, ${scheme}`, async () => {
      const origin = new URL(frontend.url).origin;
      const { page, context, faults } = await openPage(browser, origin, { width, scheme });
      try {
        await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
        await page.goto(frontend.url);
        const copied = () => page.evaluate(() => navigator.clipboard.readText());
        const buttons = page.getByRole('button', { name: 'Copy' });
        assert.equal(await buttons.count(), 2);
        await page.locator('.code').first().hover();
        assert.deepEqual(await inspect(page), []);
        await buttons.first().click();
        await page.getByRole('button', { name: 'Copied: Code 1' }).waitFor();
        assert.equal(await copied(), code);
        await page.getByRole('region', { name: 'Code 2' }).focus();
        await page.keyboard.press('Tab');
        await page.keyboard.press('Enter');
        await page.getByRole('button', { name: 'Copied: Code 2' }).waitFor();
        assert.equal(await copied(), long);
        await page.emulateMedia({ media: 'print' });
        assert.equal(await page.locator('button').first().isVisible(), false);
        assert.deepEqual(faults, []);
      } finally {
        await context.close();
      }
    });
  }
}

test('without scripts nothing is broken', async () => {
  const { slug } = await svc.deploy({ type: 'markdown', content });
  for (const [url, scripts] of [[frontend.url, false], [`${svc.url}/${slug}`, false], [`${svc.url}/${slug}`, true]]) {
    const { page, context, faults } = await openPage(browser, new URL(url).origin, { width: 360, scripts });
    try {
      await page.goto(url);
      assert.equal(await page.locator('button').count(), 0);
      assert.equal(await page.getByRole('region', { name: 'Code 1' }).innerText(), code);
      assert.deepEqual(await inspectFit(page), []);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  }
});
