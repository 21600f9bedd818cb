// The preview of the landing page: what would be published, in a frame that reaches nothing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startLanding } from './lib/landing.mjs';

let svc, open, stop;

before(async () => {
  ({ svc, open, stop } = await startLanding());
});

after(() => stop?.());

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
