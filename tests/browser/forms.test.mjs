// The platform's own forms, as a person uses them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot, startBrowser } from './lib/browser.mjs';
import { inspect, inspectFit } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

for (const scripts of [true, false]) {
  const how = scripts ? '' : ', without scripts';

  test(`a password opens its page${how}`, async () => {
    const { slug } = await svc.deploy({ type: 'markdown', password: 'opensesame', content: '# For you' });
    const { page, context, faults } = await openPage(browser, svc.url, { width: 390, scripts });
    try {
      await page.goto(`${svc.url}/${slug}`);
      const field = page.getByLabel('Password');
      assert.equal(await field.evaluate((input) => document.activeElement === input), true, 'it has the focus');
      await field.fill('sesame');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').waitFor();
      assert.match(await page.getByRole('alert').textContent(), /not the password/);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
      assert.deepEqual(await (scripts ? inspect : inspectFit)(page), []);
      await shoot(page, `wrong-password-390${scripts ? '' : '-noscript'}`);

      await field.fill('opensesame');
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'For you' }).waitFor();
      assert.equal(page.url(), `${svc.url}/${slug}`);
      const again = await page.reload();
      assert.equal(again.status(), 200, 'it stays open');
      assert.match(again.headers()['cache-control'], /no-store/);

      const cookies = await context.cookies();
      assert.equal(cookies.length, 1);
      assert.equal(cookies[0].httpOnly, true);
      assert.equal(cookies[0].sameSite, 'Lax');
      assert.equal(cookies[0].path, `/${slug}`);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  });

  test(`a button opens a one-time page, once${how}`, async () => {
    const { slug } = await svc.deploy({ type: 'markdown', one_time: true, content: '# Read me once' });
    const { page, context, faults } = await openPage(browser, svc.url, { width: 390, scripts });
    try {
      const url = `${svc.url}/${slug}`;
      await page.goto(url);
      await page.goto(url);
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'Read me once' }).waitFor();
      assert.deepEqual(faults, []);
      const again = await page.goto(url);
      assert.equal(again.status(), 404);
      await page.getByRole('heading', { name: 'Not found' }).waitFor();
    } finally {
      await context.close();
    }
  });
}

test('a one-time page with a password asks for it first', async () => {
  const { slug } = await svc.deploy({ one_time: true, password: 'opensesame', content: '<h1>Both</h1>' });
  const { page, context, faults } = await openPage(browser, svc.url);
  try {
    await page.goto(`${svc.url}/${slug}`);
    await page.getByLabel('Password').fill('opensesame');
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'This page can be read once' }).waitFor();
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'Both' }).waitFor();
    assert.deepEqual(faults, []);
    assert.equal((await page.goto(`${svc.url}/${slug}`)).status(), 404);
  } finally {
    await context.close();
  }
});

test('a disabled page says so, and one put back is there again', async () => {
  const { slug } = await svc.deploy({ content: '<h1>Here</h1>' });
  const { page, context } = await openPage(browser, svc.url);
  const status = async () => (await page.goto(`${svc.url}/${slug}`)).status();
  const becomes = async (wanted) => {
    const until = Date.now() + 2000;
    while ((await status()) !== wanted) {
      assert.ok(Date.now() < until, `it does not become ${wanted}`);
      await page.waitForTimeout(50);
    }
  };
  try {
    assert.equal(await status(), 200);
    await svc.operate('deployment', 'disable', slug);
    await becomes(403);
    await page.getByRole('heading', { name: 'This page has been disabled' }).waitFor();
    assert.equal(await page.getByText('Here').count(), 0);
    await svc.operate('deployment', 'enable', slug);
    await becomes(200);
  } finally {
    await context.close();
  }
});
