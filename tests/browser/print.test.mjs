// Tables printed to PDF: what is read from the paper is what was published, and every number is in one piece.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const corpus = resolve(dirname(fileURLToPath(import.meta.url)), '../corpus/documents');
let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Prints a page; answers the cells that it shows, and the pages of the paper: their size and their pieces of text, each line one. */
async function printPage(share) {
  const { slug } = await svc.deploy(share);
  // Printing is a deed of the reader's browser, whose screen may be dark.
  const { page, context } = await openPage(browser, svc.url, { scheme: 'dark' });
  try {
    await page.goto(`${svc.url}/${slug}`);
    const cells = await page.locator('th, td').allInnerTexts();
    const pdf = await page.pdf({ format: 'A4', preferCSSPageSize: true, margin: { top: '1cm', bottom: '1cm', left: '1cm', right: '1cm' } });
    const document = await getDocument({ data: new Uint8Array(pdf), isEvalSupported: false, verbosity: 0 }).promise;
    const sheets = [];
    for (let number = 1; number <= document.numPages; number++) {
      const sheet = await document.getPage(number);
      const [, , width, height] = sheet.view;
      const { items } = await sheet.getTextContent();
      const inside = items.filter(({ str, transform: [, , , , x, y], width: wide }) => str.trim() && (x < 0 || y < 0 || x + wide > width + 1 || y > height));
      sheets.push({ width, height, beyond: inside.map(({ str }) => str), lines: linesOfText(items) });
    }
    return { cells, sheets, text: sheets.flatMap((sheet) => sheet.lines).join('\n') };
  } finally {
    await context.close();
  }
}

/** Pieces of text that follow each other in a line, put together; what stands in another cell is another. */
function linesOfText(items) {
  const found = [];
  let last;
  for (const { str, transform: [, , , , x, y], width } of items) {
    if (!str) continue;
    const goesOn = last && Math.abs(last.y - y) < 1 && x - last.end < 3 && x >= last.end - 1;
    if (goesOn) found[found.length - 1] += str;
    else found.push(str);
    last = { y, end: x + width };
  }
  return found.map((line) => line.trim()).filter(Boolean);
}

const withoutSpace = (text) => text.normalize('NFKC').replace(/\s/g, '');
const isNumber = (text) => /^[-+−]?[\d.,’' ]*\d$/.test(text);

for (const [file, type] of [
  ['export-wide.csv', 'csv'],
  ['bank-de.csv', 'csv'],
  ['bank-preamble.csv', 'csv'],
  ['bank-newlines.csv', 'csv'],
  ['bank-quoted.csv', 'csv'],
  ['answer-tables.md', 'markdown'],
]) {
  test(`${file} is whole on paper`, async () => {
    const content = await readFile(join(corpus, file), 'utf8');
    const { cells, sheets, text } = await printPage({ type, content, ...(type === 'csv' && { title: file }) });
    for (const { beyond } of sheets) assert.deepEqual(beyond, [], 'within the paper');
    const printed = withoutSpace(text);
    const all = sheets.flatMap((sheet) => sheet.lines);
    for (const cell of cells.map((cell) => cell.trim()).filter(Boolean)) {
      // Fonts that lack a sign show none.
      if (/\p{Extended_Pictographic}/u.test(cell)) continue;
      for (const line of cell.split(/\s*\n\s*/)) {
        const words = line.split(/\s+/).map(withoutSpace).filter((word) => !printed.includes(word));
        assert.deepEqual(words, [], `all of ${cell}`);
      }
      if (isNumber(cell)) assert.ok(all.some((line) => withoutSpace(line).includes(withoutSpace(cell))), `${cell} is in one piece`);
    }
  });
}

test('a long table has its head on every page, in black on white', async () => {
  const rows = Array.from({ length: 200 }, (_, at) => `Item ${at},${at}.50,${'words '.repeat(3)}`);
  const { sheets, text } = await printPage({ type: 'csv', title: 'Long', content: ['Name,Price,Remark', ...rows].join('\n') });
  assert.ok(sheets.length > 2);
  for (const { lines, height, width } of sheets) {
    assert.ok(lines.includes('Price'), lines.slice(0, 5).join());
    assert.ok(height > width);
  }
  assert.ok(text.includes('199.50'));
});

test('a wide table is printed across, and no column is lost', async () => {
  const names = Array.from({ length: 20 }, (_, at) => `Column${at}`);
  const row = names.map((_, at) => `${at}00.25`);
  const { sheets } = await printPage({ type: 'csv', title: 'Wide', content: [names, row, row].map((cells) => cells.join(',')).join('\n') });
  const [{ width, height, lines }] = sheets;
  assert.ok(width > height);
  for (const cell of [...names, ...row]) assert.ok(lines.includes(cell), cell);
});
