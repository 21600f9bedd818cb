// Forms of the platform in a browser without scripts: a share, its end, and a report.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, shoot } from './lib/browser.mjs';
import { inspect, inspectFit } from './lib/inspect.mjs';
import { WELCOME, startLanding } from './lib/landing.mjs';

let svc, browser, open, stop;

before(async () => {
  ({ svc, browser, open, stop } = await startLanding());
});

after(() => stop?.());

test('without scripts the form publishes, and takes back', async () => {
  for (const scheme of ['light', 'dark']) {
    const { page, context, faults, content, publish } = await open({ scripts: false, width: 360, scheme });
    try {
      assert.equal(await page.getByText('Open a file').isVisible(), false, 'what needs scripts is not there');
      assert.equal(await page.locator('#preview').isVisible(), false);
      await shoot(page, `landing-without-scripts-${scheme}-360`);
      await content.fill('# By *hand*\n\nTwo lines');
      await page.locator('.options>summary').click();
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
