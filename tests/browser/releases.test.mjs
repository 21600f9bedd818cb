// A page that is loaded, and calls its action, again and again while both are released together.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const releases = 200;
// Binds are added by so many of the releases: more would be more than an action may have.
const growing = 40;

let svc, browser, ask, project;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  ask = await svc.owner('acme');
  project = (await ask('POST', '', { name: 'House' })).id;
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Names of the binds that the action of a release has, and that its page gives. */
const binds = (number) => Array.from({ length: Math.min(number, growing) }, (_, index) => `p${index + 1}`);

/** A page that calls the action with each bind that came with it, and shows both numbers, or the refusal. */
const pageOf = (number) => `<!doctype html><html lang="en"><title>Hall</title><link rel="icon" href="data:,"><output></output><script>
  const params = Object.fromEntries(${JSON.stringify(binds(number))}.map((name) => [name, 7]));
  svc.db.op('say', params).then(
    ({ rows }) => document.querySelector('output').append(\`${number} \${rows[0].n}\`),
    (error) => document.querySelector('output').append(\`${number} \${error.code} \${error.message}\`),
  );
</script></html>`;

const release = (number, live) =>
  ask('POST', `/${project}/release`, {
    ...(number === 1 && { migrations: [{ ddl: 'CREATE TABLE guests (name TEXT)' }] }),
    actions: [
      {
        name: 'say',
        sql: `SELECT ${number} AS n, ${binds(number).map((name) => `:${name}`).join(' + ')} AS sum`,
        defaults: Object.fromEntries(binds(number).map((name) => [name, 0])),
      },
    ],
    pages: [{ slug: 'hall', type: 'html', content: pageOf(number), expected_active_revision_id: live }],
  });

test('no page is refused by the action that it came with, or by a later one', async () => {
  let { pages } = await release(1, null);
  const [{ url }] = pages;
  const { page, faults } = await openPage(browser, new URL(url).origin);
  let isOver = false;
  const seen = [];
  const visiting = async () => {
    while (!isOver) {
      await page.goto(url);
      await page.waitForFunction(() => document.querySelector('output').textContent);
      seen.push(await page.textContent('output'));
    }
  };
  const releasing = async () => {
    for (let number = 2; number <= releases; number += 1) {
      ({ pages } = await release(number, pages[0].revision_id));
    }
    isOver = true;
  };
  await Promise.all([visiting(), releasing()]);
  for (const text of seen) {
    const [, shown, called] = /^(\d+) (\d+)$/.exec(text) ?? assert.fail(`the page ${text}`);
    assert.ok(Number(called) >= Number(shown), `page ${shown} was answered by the older action ${called}`);
  }
  const different = new Set(seen).size;
  assert.ok(different > 10, `${different} different pages were seen in ${seen.length} loads`);
  assert.deepEqual(faults, []);
});
