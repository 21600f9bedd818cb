// What tenants and visitors may write, in every place where it is shown: no script, no request, and no character lost.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { button, dialog, field, makeShop, startConsole, table } from '../lib/console.mjs';

const run = 'window.wasRun=1';
/** Sixty strings. */
const strings = [
  `<script>${run}</script>`,
  `<img src=x onerror="${run}">`,
  `<svg onload="${run}">`,
  `"><script>${run}</script>`,
  `'><img src=x onerror='${run}'>`,
  `</td></tr></table><script>${run}</script>`,
  `</textarea><script>${run}</script>`,
  `</title><script>${run}</script>`,
  `</option></select><img src=x onerror=${run}>`,
  `<iframe srcdoc="<script>parent.wasRun=1</script>"></iframe>`,
  '<iframe src="http://example.invalid/"></iframe>',
  '<link rel=stylesheet href="http://example.invalid/a.css">',
  '<style>*{background:url(http://example.invalid/b)}</style>',
  '<meta http-equiv=refresh content="0;url=http://example.invalid/">',
  '<base href="http://example.invalid/">',
  '<form action="http://example.invalid/"><button>Sign in</button></form>',
  '<object data="http://example.invalid/"></object>',
  '<a href="javascript:window.wasRun=1">link</a>',
  '<!-- comment -->',
  '<![CDATA[ x ]]>',
  `javascript:${run}`,
  `JaVaScRiPt:${run}//`,
  `data:text/html,<script>${run}</script>`,
  'vbscript:x',
  '//example.invalid/x',
  'http://example.invalid/x',
  '${window.wasRun=1}',
  '{{constructor.constructor("window.wasRun=1")()}}',
  '<%= 1 %>',
  '#{1+1}',
  '`${window.wasRun=1}`',
  '\\u003cscript\\u003e',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '&amp;',
  '&nbsp;&#x202e;',
  "'; DROP TABLE hostile; --",
  '" OR "1"="1',
  ":value ?1 @x $y",
  '%s%n%d%%',
  '../../etc/passwd',
  '=HYPERLINK("http://example.invalid")',
  '+1+1',
  '-1',
  '@SUM(1)',
  '\u202eesrever',
  '\u2066isolated\u2069',
  '\u200bzero\u200bwidth\ufeff',
  'a\u0000b',
  '\u0001\u001b[31mred\u0007',
  'tab\there\nline\r\nwindows\rold',
  '\u2028\u2029',
  'é e\u0301 \ufb01 İi̇ ß',
  'नमस्ते مرحبا שלום',
  '👩‍👩‍👧‍👦🏴‍☠️',
  'x̵̢̧̛͓̣̩̲͚̟̤̤̱͉̆̇̄̔̍̐̽̕͝',
  '   spaces   ',
  'null',
  '__proto__',
  'x'.repeat(5000),
  '\ufffd\ufffe\uffff',
];

let service, shop;

before(async () => {
  assert.equal(new Set(strings).size, 60);
  service = await startConsole();
  shop = await makeShop(service, `Shop ${strings[0]}`);
});
after(() => service?.stop());

const wasRun = (page) => page.evaluate(() => window.wasRun);

/** Visits a screen with such strings, and looks whether they stayed texts. */
async function look(open, path) {
  await open.visit(path);
  await open.page.waitForTimeout(150);
  assert.equal(await wasRun(open.page), undefined, path);
  assert.equal(await open.page.locator('main :is(script, iframe:not([title]), object, link, base, meta, style)').count(), 0, path);
}

test('rows: each string is shown, and comes back as it was', async () => {
  const quote = (name) => `"${name.replaceAll('"', '""')}"`;
  // Names of columns and tables are strangers' words, too.
  const named = ['<b onclick="window.wasRun=1">c</b>', 'a "quoted" name', "it's", '\u202eturned', '__proto__', 'constructor', 'shape', 'c0', 'rowid'];
  const name = `hostile <img src=x onerror="${run}"> "t"`;
  await service.ask('PATCH', `${shop.at}/backend`, { ddl: `CREATE TABLE ${quote(name)} (id INTEGER PRIMARY KEY, ${named.map((one) => `${quote(one)} TEXT`).join(', ')})` });
  for (const [at, value] of strings.entries()) {
    await service.ask('POST', `${shop.at}/backend/query`, { sql: `INSERT INTO ${quote(name)} (id, ${quote(named[0])}, ${quote(named[4])}) VALUES (:id, :value, :value)`, params: { id: at + 1, value } });
  }
  const open = await service.open();
  const { page } = open;
  await look(open, `${shop.path}/data`);
  await look(open, `${shop.path}/schema`);
  await look(open, `${shop.path}/data?table=${encodeURIComponent(name)}`);
  const cells = table(page, 'Rows').locator('td[data-type="text"]');
  const shown = await cells.evaluateAll((all) => all.map((cell) => [cell.textContent, cell.hasAttribute('data-cut')]));
  // Both columns of each row; a string with nothing to spell out is shown letter for letter.
  assert.equal(shown.length, 2 * strings.length);
  for (const [at, value] of strings.entries()) {
    const [text, isCut] = shown[2 * at];
    assert.equal(isCut, value.length > 500, value);
    if (!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/.test(value) && !isCut) assert.equal(text, value);
  }
  // Every row is opened and changed beside the string, which stays to the byte.
  for (const [at] of strings.entries()) {
    await button(page, 'Open row').nth(at).click();
    const box = dialog(page, 'Row');
    await field(box, "it's").fill(`changed ${at}`);
    await button(box, 'Save row').click();
    await box.waitFor({ state: 'detached' });
  }
  // And the string itself is edited: a letter at its end.
  for (const at of [0, 9, 44, 47, 49, 53, 58]) {
    await button(page, 'Open row').nth(at).click();
    const box = dialog(page, 'Row');
    await field(box, named[4]).press('Control+End');
    await page.keyboard.type('!');
    await button(box, 'Save row').click();
    await box.waitFor({ state: 'detached' });
  }
  const { rows } = await service.ask('POST', `${shop.at}/backend/query`, { sql: `SELECT ${quote(named[0])} AS one, ${quote(named[4])} AS other, "it's" AS note FROM ${quote(name)} ORDER BY id`, params: {} });
  for (const [at, value] of strings.entries()) {
    assert.equal(rows[at].one, value, `row ${at}`);
    assert.equal(rows[at].other, [0, 9, 44, 47, 49, 53, 58].includes(at) ? `${value}!` : value, `row ${at}`);
    assert.equal(rows[at].note, `changed ${at}`);
  }
  assert.equal(await wasRun(page), undefined);
  await open.close();
});

test('names, notes, messages and prices stay texts on every screen', async () => {
  const fits = (most) => strings.filter((value) => value.trim() && [...value].length <= most && !value.includes('\u0000'));
  const quietly = async (work) => {
    // What the API refuses nobody sees.
    await work().catch((error) => assert.match(error.message, / 4\d\d /));
  };
  const projects = [];
  for (const value of fits(100).slice(0, 30)) {
    await quietly(async () => projects.push(await service.ask('POST', '/projects', { name: value, description: value })));
    if (projects.length === 4) break;
  }
  for (const [at, value] of strings.entries()) {
    await quietly(() => service.ask('PUT', `${shop.at}/backend/actions`, { actions: [{ name: `hostile_${at}`, sql: `SELECT ${at} AS n, '${value.replaceAll("'", "''").replaceAll('\u0000', '').slice(0, 1000)}' AS text`, note: value.slice(0, 1000) }] }));
    await quietly(() => service.ask('POST', `${shop.at}/payments/catalog`, { product_name: value.slice(0, 200), label: value.slice(0, 200), description: value.slice(0, 2000), amount: 100, currency: 'eur' }));
    await quietly(() => service.ask('POST', '/workspaces/acme/keys', { role: 'viewer', note: value.slice(0, 1000) }));
  }
  for (const value of fits(200).slice(0, 25)) {
    await quietly(() => service.ask('POST', `${shop.at}/frontends`, { type: 'markdown', content: `# x\n\n${value}`, title: value }));
    await quietly(async () => {
      const at = `${shop.at}/frontends/${shop.page.slug}`;
      const { active_revision_id: base } = await service.ask('GET', `${at}/revisions`);
      await service.ask('POST', `${at}/revisions`, { base_revision_id: base, content: `# Harbour\n\n${value}\n`, message: value, title: value });
    });
  }
  await quietly(() => service.ask('PATCH', `${shop.at}/backend`, { ddl: `CREATE TABLE more (a TEXT DEFAULT '<script>${run}</script>')`, note: strings[1] }));
  await service.ask('PATCH', '/workspaces/acme', { display_name: strings[0].slice(0, 100) });

  const open = await service.open();
  for (const path of ['/', '/w/acme/members', '/w/acme/keys', '/w/acme/audit', '/w/acme/plan', '/w/acme/settings']) await look(open, path);
  for (const project of projects) await look(open, `/p/${project.id}`);
  for (const part of ['', '/pages', `/pages/${shop.page.slug}`, '/data', '/sql', '/schema', '/actions', '/actions/hostile_0', '/history', '/rooms', '/visitors', '/payments', '/agents', '/domains', '/settings']) await look(open, shop.path + part);
  await look(open, `${shop.path}/pages/${shop.page.slug}`);
  await open.page.getByRole('tab', { name: 'Revisions' }).click();
  const { revisions } = await service.ask('GET', `${shop.at}/frontends/${shop.page.slug}/revisions`);
  for (const revision of revisions.slice(0, 8)) {
    await open.visit(`${shop.path}/pages/${shop.page.slug}/${revision.revision_id}`);
    assert.equal(await wasRun(open.page), undefined);
  }
  // The turned name is told by its number, in the title of the document, too.
  const turned = projects.find((project) => project.name.startsWith('\u202e'));
  if (turned) {
    await open.visit(`/p/${turned.id}`);
    assert.match(await open.page.title(), /^⟪U\+202E⟫/);
  }
  await open.close();
});

test('a preview in its frame reaches nothing of the console', async () => {
  const content = `<!doctype html><html lang="en"><title>Try</title><p id="out">trying</p><script>
    const seen = [];
    const attempt = (name, work) => { try { const got = work(); seen.push(name + ':' + (got === null || got === undefined ? 'no' : 'YES')); } catch { seen.push(name + ':no'); } };
    attempt('document', () => parent.document.title);
    attempt('storage', () => parent.sessionStorage.length);
    attempt('own storage', () => sessionStorage.length);
    attempt('top', () => { top.location.href = 'http://example.invalid/'; });
    attempt('popup', () => open('http://example.invalid/'));
    document.getElementById('out').textContent = seen.join(' ');
  </script></html>`;
  const page = await service.ask('POST', `${shop.at}/frontends`, { type: 'html', content, requested_slug: 'prying' });
  const { active_revision_id: live } = await service.ask('GET', `${shop.at}/frontends/${page.slug}/revisions`);
  const open = await service.open();
  open.allow('navigate', 'sandbox', 'popup', 'Blocked', 'Unsafe');
  await open.visit(`${shop.path}/pages/${page.slug}/${live}`);
  const frame = open.page.frameLocator('iframe[title="Live"]');
  await frame.getByText('document:').waitFor();
  assert.doesNotMatch(await frame.locator('#out').textContent(), /YES/);
  assert.equal(new URL(open.page.url()).pathname, `${shop.path}/pages/${page.slug}/${live}`);
  assert.equal(await open.page.locator('iframe').first().getAttribute('sandbox'), 'allow-scripts');
  await open.close();
});
