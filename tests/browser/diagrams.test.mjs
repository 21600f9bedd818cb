// Every type of diagram, in light and dark, on a phone, and beside what mermaid.js draws.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { examineLabels } from './lib/drawings.mjs';
import { inspect, inspectPrint } from './lib/inspect.mjs';
import { startSvc } from './lib/svc.mjs';

const corpus = resolve(dirname(fileURLToPath(import.meta.url)), '../corpus/diagrams');
const files = (await readdir(corpus)).filter((name) => name.endsWith('.mmd')).sort();
const names = files.map((name) => name.slice(0, -'.mmd'.length));
const sources = new Map();
const schemes = ['light', 'dark'];

let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  for (const name of names) {
    const content = await readFile(join(corpus, `${name}.mmd`), 'utf8');
    sources.set(name, content);
    await svc.deploy({ type: 'mermaid', name, title: `A diagram: ${name}`, content });
  }
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

for (const name of names) {
  test(`${name} as a page`, async () => {
    const contrasts = {};
    for (const width of widths) {
      for (const scheme of schemes) {
        const { page, context, faults } = await openPage(browser, svc.url, { width, scheme, scripts: true });
        try {
          await page.goto(`${svc.url}/${name}`);
          await shoot(page, `diagram-${name}-${width}-${scheme}`);
          assert.deepEqual(await inspect(page), []);
          assert.deepEqual(faults, []);
          const found = await page.evaluate(examineLabels);
          assert.ok(found.labels.length > 0, 'it has labels');
          assert.deepEqual(found.clipped, [], 'labels fit into their shapes');
          contrasts[scheme] = found.labels;
        } finally {
          await context.close();
        }
      }
    }
    for (const scheme of schemes) {
      const faint = contrasts[scheme].filter(({ ratio }) => ratio < 4.5);
      assert.deepEqual(faint, [], `every label is read in the ${scheme}`);
    }
  });
}

test('the source is folded below its drawing', async () => {
  const { page, context } = await openPage(browser, svc.url, { scripts: false });
  try {
    await page.goto(`${svc.url}/flowchart`);
    const source = page.locator('figure details pre');
    assert.equal(await page.locator('figure > svg').count(), 1);
    assert.ok(await source.isHidden());
    await page.locator('figure summary').click();
    assert.ok(await source.isVisible());
    assert.equal(await source.textContent(), sources.get('flowchart'));
  } finally {
    await context.close();
  }
});

test('diagrams of one page do not share what they refer to', async () => {
  const fence = '```';
  const blocks = names.slice(0, 12).map((name) => `## ${name}\n\n${fence}mermaid\n${sources.get(name)}\n${fence}\n`);
  await svc.deploy({ type: 'markdown', name: 'several', title: 'Several', content: `# Several\n\n${blocks.join('\n')}` });
  for (const width of widths) {
    const { page, context, faults } = await openPage(browser, svc.url, { width });
    try {
      await page.goto(`${svc.url}/several`);
      await shoot(page, `diagrams-several-${width}`);
      assert.equal(await page.locator('figure > svg').count(), 12);
      assert.deepEqual(await inspect(page), []);
      assert.deepEqual(faults, []);
      const twice = await page.evaluate(() => {
        const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
        return ids.filter((id, at) => ids.indexOf(id) !== at);
      });
      assert.deepEqual(twice, []);
    } finally {
      await context.close();
    }
  }
});

test('on paper a drawing is light and whole', async () => {
  const { page, context } = await openPage(browser, svc.url, { width: 718, scheme: 'dark' });
  try {
    for (const name of ['sequence', 'timeline']) {
      await page.goto(`${svc.url}/${name}`);
      assert.deepEqual(await inspectPrint(page), []);
      await shoot(page, `diagram-${name}-print`);
      const ink = await page.evaluate(() => getComputedStyle(document.querySelector('figure svg')).fill);
      const [red] = ink.match(/\d+/g).map(Number);
      assert.ok(red < 128, `${name}: ${ink}`);
    }
  } finally {
    await context.close();
  }
});

test('every diagram says what mermaid.js says', async () => {
  const library = join(dirname(createRequire(import.meta.url).resolve('mermaid')), 'mermaid.min.js');
  const { page, context } = await openPage(browser, svc.url, { width: 1700 });
  try {
    for (const name of names) {
      await page.goto(`${svc.url}/${name}`);
      // The page has no scripts of its own, and Chromium may still run ours in it.
      await page.addScriptTag({ path: library }).catch(() => {});
      const { ours, theirs } = await page.evaluate(compare, sources.get(name));
      await shoot(page, `beside-${name}`);
      assert.deepEqual(ours.words, theirs.words, name);
    }
  } finally {
    await context.close();
  }
});

// Runs in the page: draws the source beside our drawing, and answers the words of both.
async function compare(source) {
  const words = (svg) => {
    const text = [];
    const walker = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      // Of a switch a browser shows the first part.
      const hidden = 'style, title, desc, switch > :not(:first-child)';
      if (!walker.currentNode.parentElement.closest(hidden)) text.push(walker.currentNode.data);
    }
    return text.join('').replace(/\s+/g, '').split('').sort().join('');
  };
  mermaid.initialize({ startOnLoad: false, fontFamily: 'Arial, sans-serif', layout: 'dagre', look: 'classic', theme: 'default', flowchart: { minNodeWidth: 0 } });
  const figure = document.querySelector('figure');
  const ours = { words: words(figure.querySelector('svg')) };
  const { svg } = await mermaid.render('theirs', source);
  const beside = document.createElement('div');
  beside.innerHTML = svg;
  figure.append(beside);
  return { ours, theirs: { words: words(beside.querySelector('svg')) } };
}
