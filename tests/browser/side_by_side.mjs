// Makes pictures to be looked at: each document of the corpus as we show it, beside GitHub's stylesheet on the same elements.
// `node side_by_side.mjs [NAME…]`; the pictures of diagrams beside mermaid.js are made by diagrams.test.mjs.
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const corpus = resolve(dirname(fileURLToPath(import.meta.url)), '../corpus/documents');
const types = { '.md': 'markdown', '.csv': 'csv', '.json': 'json' };
const styles = await readFile(createRequire(import.meta.url).resolve('github-markdown-css/github-markdown.css'), 'utf8');
const wanted = process.argv.slice(2);
const files = (await readdir(corpus)).filter((file) => types[extname(file)]).sort();

/** Two frames beside one another: ours as it is, and what is in it under GitHub's styles. */
async function beside(page, ours) {
  const main = ours.slice(ours.indexOf('<main>') + 6, ours.lastIndexOf('</main>'));
  const theirs = `<!doctype html><meta charset=utf-8><style>${styles}body{margin:2rem}</style><div class="markdown-body">${main}</div>`;
  await page.setContent('<style>body{margin:0;display:flex}iframe{flex:1;border:0;height:100vh}</style><iframe></iframe><iframe></iframe>');
  await page.evaluate(([ours, theirs]) => {
    const [left, right] = document.querySelectorAll('iframe');
    [left.srcdoc, right.srcdoc] = [ours, theirs];
    return Promise.all([left, right].map((frame) => new Promise((loaded) => frame.addEventListener('load', loaded))));
  }, [ours, theirs]);
  const height = await page.evaluate(() =>
    Math.max(...[...document.querySelectorAll('iframe')].map((frame) => frame.contentDocument.documentElement.scrollHeight)));
  await page.setViewportSize({ width: 1700, height: Math.min(height + 20, 4000) });
}

const [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
try {
  for (const file of files) {
    const name = file.slice(0, -extname(file).length);
    if (wanted.length && !wanted.includes(name)) continue;
    const content = await readFile(join(corpus, file), 'utf8');
    const { slug } = await svc.deploy({ type: types[extname(file)], content });
    const ours = await (await fetch(`${svc.url}/${slug}`)).text();
    if (extname(file) === '.md') {
      const { page, context } = await openPage(browser, svc.url, { width: 1700 });
      await beside(page, ours);
      await shoot(page, `side-${name}`);
      await context.close();
    }
    for (const width of widths) {
      for (const scheme of ['light', 'dark']) {
        const { page, context } = await openPage(browser, svc.url, { width, scheme });
        await page.goto(`${svc.url}/${slug}`);
        await shoot(page, `document-${name}-${width}-${scheme}`);
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  await svc.stop();
}
