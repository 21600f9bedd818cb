// Rows, to the last bit: what is shown, edited, and taken away as a file.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { button, dialog, field, makeShop, said, settle, startConsole, table, textbox, toggle } from '../lib/console.mjs';

let service, shop;

before(async () => {
  service = await startConsole();
  shop = await makeShop(service);
});
after(() => service?.stop());

const query = (sql, params = {}) => service.ask('POST', `${shop.at}/backend/query`, { sql, params });
/** Answers a row as the server writes it, without anybody's numbers in between. */
async function raw(sql) {
  const answer = await fetch(`${service.svc.url}/api/v1${shop.at}/backend/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.keys.owner}` },
    body: JSON.stringify({ sql, read_only: true }),
  });
  return answer.text();
}
const rowOf = (page, id) => table(page, 'Rows').getByRole('row').filter({ has: page.locator(`td[data-type="integer"]:text-is("${id}")`) });
async function openRow(page, id) {
  await button(rowOf(page, id), 'Open row').click();
  const box = dialog(page, 'Row');
  await box.getByRole('group', { name: 'Parameters' }).waitFor();
  return box;
}
async function save(page, box) {
  await button(box, 'Save row').click();
  await box.waitFor({ state: 'detached', timeout: 10_000 }).catch(async (error) => {
    throw new Error(`not saved: ${await box.getByRole('alert').allTextContents()}`, { cause: error });
  });
}

test('each kind of value is told apart, and shown as it is', async () => {
  const { page, visit, close } = await service.open();
  await query("INSERT INTO notes (id, text, big, raw, loose) VALUES (10, '', 9007199254740993, x'00ff68', 1.0), (11, 'NULL', -9223372036854775808, NULL, 1), (12, 'x', 9223372036854775807, x'', 'text')");
  await visit(`${shop.path}/data?table=notes`);
  const cells = async (id) => rowOf(page, id).locator('td[data-type]').evaluateAll((all) => all.map((cell) => [cell.dataset.type, cell.textContent]));
  assert.deepEqual(await cells(10), [['integer', '10'], ['text', ''], ['integer', '9007199254740993'], ['blob', "X'00FF68'"], ['real', '1.0']]);
  assert.deepEqual(await cells(11), [['integer', '11'], ['text', 'NULL'], ['integer', '-9223372036854775808'], ['null', 'NULL'], ['integer', '1']]);
  assert.deepEqual(await cells(12), [['integer', '12'], ['text', 'x'], ['integer', '9223372036854775807'], ['blob', "X''"], ['text', 'text']]);
  await close();
});

test('an edit of one field leaves the others to the last bit', async () => {
  const { page, visit, close } = await service.open();
  await query("INSERT INTO notes (id, text, big, raw, loose) VALUES (20, 'a\r\nb\rc\n', 9007199254740993, x'00ff68', 0.1), (21, 'y', NULL, NULL, '')");
  await visit(`${shop.path}/data?table=notes`);
  let box = await openRow(page, 20);
  await field(box, 'loose').fill('0.25');
  await save(page, box);
  assert.match(await raw('SELECT text, big, raw, loose FROM notes WHERE id = 20'), /"text":"a\\r\\nb\\rc\\n","big":9007199254740993,"raw":\{"base64":"AP9o"\},"loose":0\.25\}/);
  box = await openRow(page, 20);
  await field(box, 'text').press('Control+End');
  await field(box, 'text').pressSequentially('d');
  await field(box, 'big').fill('-9223372036854775808');
  await save(page, box);
  assert.match(await raw('SELECT text, big FROM notes WHERE id = 20'), /"text":"a\\r\\nb\\rc\\nd","big":-9223372036854775808\}/);
  box = await openRow(page, 21);
  await field(box, 'Type of loose').selectOption('NULL');
  await field(box, 'big').fill('9223372036854775808');
  await button(box, 'Save row').click();
  await box.getByText('An integer has digits alone').waitFor();
  await field(box, 'big').fill('9223372036854775807');
  await save(page, box);
  assert.match(await raw('SELECT text, big, loose FROM notes WHERE id = 21'), /"text":"y","big":9223372036854775807,"loose":null\}/);
  await close();
});

test('a text of 200,000 characters is cut where it is shown, and whole where it is edited', async () => {
  const { page, visit, close } = await service.open();
  const word = 'abcdefghijklmnopqrstuvwxyzå🌊 ';
  await query("INSERT INTO notes (id, text) VALUES (30, 'x')");
  await query("UPDATE notes SET text = replace(printf('%.*c', 6900, 'x'), 'x', :word) || 'end' WHERE id = 30", { word });
  await visit(`${shop.path}/data?table=notes`);
  const cell = rowOf(page, 30).locator('td[data-cut]');
  assert.equal(await cell.count(), 1);
  assert.ok((await cell.textContent()).length < 1000);
  let box = await openRow(page, 30);
  const whole = `${word.repeat(6900)}end`;
  assert.equal(await field(box, 'text').inputValue(), whole);
  // Another field of the row, then the text itself: in its middle, and at its end.
  await field(box, 'big').fill('1');
  await save(page, box);
  box = await openRow(page, 30);
  const edited = `${whole.slice(0, 100_000)}new 🌊 words${whole.slice(100_020)}!`;
  await field(box, 'text').fill(edited);
  await button(box, 'Save row').click();
  await box.locator('[data-code="not_sent"]').waitFor();
  // A change of a long text at two ends has no room in one request: two smaller ones do it.
  await field(box, 'text').fill(edited.slice(0, -1));
  await save(page, box);
  box = await openRow(page, 30);
  await field(box, 'text').fill(edited);
  await save(page, box);
  assert.equal(JSON.parse(await raw('SELECT text, typeof(text) AS kind FROM notes WHERE id = 30')).rows[0].text, edited);
  await close();
});

test('rows are inserted, filtered, sorted and deleted', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/data?table=notes`);
  await button(page, 'Insert row').click();
  let box = dialog(page, 'Row');
  await field(box, 'text').fill('Inserted here');
  await field(box, 'big').fill('9007199254740993');
  await save(page, box);
  assert.match(await said(page).textContent(), /Inserted/);
  await field(page, 'Filter column').selectOption('text');
  await field(page, 'Operator').selectOption('contains');
  await field(page, 'Value').fill('inserted');
  await button(page, 'Apply filter').click();
  const rows = table(page, 'Rows').locator('tbody tr');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  await field(page, 'Filter column').selectOption('big');
  await field(page, 'Operator').selectOption('=');
  await field(page, 'Value').fill('9007199254740993');
  await button(page, 'Apply filter').click();
  await rows.filter({ hasText: 'Inserted here' }).waitFor();
  await button(rows.filter({ hasText: 'Inserted here' }), 'Open row').click();
  box = dialog(page, 'Row');
  await button(box, 'Delete row').click();
  const asked = dialog(page, 'Delete row');
  await button(asked, 'Cancel').click();
  await button(box, 'Delete row').click();
  await button(asked, 'Delete row').click();
  await said(page).getByText('Deleted the row').waitFor();
  await box.waitFor({ state: 'detached' });
  assert.deepEqual((await query("SELECT count(*) AS n FROM notes WHERE text = 'Inserted here'")).rows, [{ n: 0 }]);
  await button(page, 'Remove filter').click();
  await button(page, 'id').click();
  await table(page, 'Rows').locator('th[aria-sort="ascending"]').filter({ hasText: 'id' }).waitFor();
  await close();
});

test('pages of rows follow each other', async () => {
  const { page, visit, close } = await service.open();
  await query("WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1229) INSERT INTO notes (id, text) SELECT i, 'row ' || i FROM n");
  await visit(`${shop.path}/data?table=notes`);
  assert.equal(await table(page, 'Rows').locator('tbody tr').count(), 100);
  assert.equal(await button(page, 'Previous page').getAttribute('aria-disabled'), 'true');
  await button(page, 'Next page').click();
  await page.getByText(/Rows 101 to 200/).waitFor();
  await button(page, 'Next page').click();
  await page.getByText(/Rows 201 to /).waitFor();
  assert.equal(await button(page, 'Next page').getAttribute('aria-disabled'), 'true');
  await query('DELETE FROM notes WHERE id >= 1000');
  await close();
});

test('the second of two editors is told, and loses nothing', async () => {
  await query("INSERT INTO notes (id, text) VALUES (40, 'as it was')");
  const [one, two] = [await service.open(), await service.open()];
  for (const { visit } of [one, two]) await visit(`${shop.path}/data?table=notes`);
  const [first, second] = [await openRow(one.page, 40), await openRow(two.page, 40)];
  await field(first, 'text').fill('by the first');
  await save(one.page, first);
  await field(second, 'text').fill('by the second');
  await button(second, 'Save row').click();
  await second.locator('[role="alert"][data-code="row_changed"]').waitFor();
  assert.equal(await field(second, 'text').inputValue(), 'by the second');
  assert.deepEqual((await query('SELECT text FROM notes WHERE id = 40')).rows, [{ text: 'by the first' }]);
  await save(two.page, second);
  assert.deepEqual((await query('SELECT text FROM notes WHERE id = 40')).rows, [{ text: 'by the second' }]);
  await one.close();
  await two.close();
});

test('live rows appear by themselves', async () => {
  const { page, visit, close } = await service.open();
  await visit(`${shop.path}/data?table=notes`);
  await toggle(page, 'Live').click();
  await query("INSERT INTO notes (id, text) VALUES (50, 'arrived meanwhile')");
  await rowOf(page, 50).waitFor({ timeout: 10_000 });
  await close();
});

test('what a constraint refuses is told at its field', async () => {
  const { page, visit, close, allow } = await service.open();
  allow('409');
  await visit(`${shop.path}/data?table=notes`);
  await button(page, 'Insert row').click();
  const box = dialog(page, 'Row');
  await field(box, 'big').fill('1');
  await button(box, 'Save row').click();
  await box.locator('[data-code="constraint_violation"]').waitFor();
  assert.equal(await field(box, 'text').getAttribute('aria-invalid'), 'true');
  await close();
});

test('files have what the database has', async () => {
  const { page, visit, close } = await service.open();
  await query('DELETE FROM notes');
  await query("INSERT INTO notes (id, text, big, raw, loose) VALUES (1, '=1+1', 9007199254740993, x'00ff', NULL), (2, '', -9223372036854775808, NULL, 1.0), (3, printf('%.*c', 200000, 'y'), NULL, NULL, 'a \"b\", c')");
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill('SELECT * FROM notes ORDER BY id');
  await button(page, 'Run').click();
  await table(page, 'Result').waitFor();
  const take = async (name) => {
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, name).click()]);
    return readFile(await download.path(), 'utf8');
  };
  const csv = await take('Download CSV');
  const lines = csv.split('\r\n');
  assert.equal(lines[0], 'id,text,big,raw,loose');
  assert.equal(lines[1], "1,'=1+1,9007199254740993,AP8=,");
  assert.equal(lines[2], '2,"",-9223372036854775808,,1.0');
  assert.equal(lines[3], `3,${'y'.repeat(200_000)},,,"a ""b"", c"`);
  const json = await take('Download JSON');
  assert.match(json, /"big": 9007199254740993,/);
  assert.match(json, /"big": -9223372036854775808,/);
  assert.match(json, /"loose": 1\.0\b/);
  const rows = JSON.parse(json);
  assert.deepEqual([rows[0].text, rows[0].raw, rows[0].loose, rows[1].text, rows[2].text.length], ['=1+1', { base64: 'AP8=' }, null, '', 200_000]);
  await settle(page);
  await close();
});

test('a large answer has all its rows, which are laid out as they are reached', async () => {
  const { page, visit, close } = await service.open();
  const columns = Array.from({ length: 40 }, (_, at) => `i * ${at + 1} AS c${at}`).join(', ');
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT ${columns} FROM n`);
  await button(page, 'Run').click();
  await table(page, 'Result').locator('tbody tr').nth(499).waitFor({ state: 'attached' });
  const places = await page.evaluate(() => {
    const [heads, cells] = [document.querySelectorAll('table th'), document.querySelectorAll('tbody tr:nth-child(2) td')];
    return [0, 5, 20, 39].map((at) => Math.round(heads[at].getBoundingClientRect().left - cells[at].getBoundingClientRect().left));
  });
  assert.deepEqual(places, [0, 0, 0, 0]);
  const last = table(page, 'Result').locator('tbody tr').nth(499);
  await last.scrollIntoViewIfNeeded();
  assert.deepEqual(await last.locator('td').evaluateAll((all) => [all.length, all[39].textContent, all[39].dataset.type]), [40, '20000', 'integer']);
  await close();
});
