// Makes pictures to be looked at: every document of the corpus beside GitHub's published stylesheet on the same elements, and
// every diagram beside what mermaid.js draws of the same source; on a desk and on a phone, in light and in dark.
// `node side_by_side.mjs [NAME…]` writes them to `shots/`; a name is that of a file of the corpus, without its ending.
import { readFile, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openPage, shoot, startBrowser, widths } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const require = createRequire(import.meta.url);
const corpus = resolve(dirname(fileURLToPath(import.meta.url)), '../corpus');
const types = { '.md': 'markdown', '.csv': 'csv', '.json': 'json', '.mmd': 'mermaid' };
const wanted = process.argv.slice(2);
const github = await readFile(require.resolve('github-markdown-css/github-markdown.css'), 'utf8');
const library = join(dirname(require.resolve('mermaid')), 'mermaid.min.js');
/** How wide each of two documents is that stand beside one another. */
const halves = { 360: 390, 1280: 900 };
const schemes = ['light', 'dark'];

/** The sources of a folder, each as its name, its type and its text. */
async function readSources(folder) {
  const files = (await readdir(join(corpus, folder))).filter((file) => types[extname(file)]).sort();
  const chosen = files.filter((file) => !wanted.length || wanted.includes(parse(file).name));
  return Promise.all(chosen.map(async (file) => ({
    name: parse(file).name,
    type: types[extname(file)],
    content: await readFile(join(corpus, folder, file), 'utf8'),
  })));
}

/** Runs `use` with a page of each width and scheme. */
async function inEveryScheme(use) {
  for (const width of widths) {
    for (const scheme of schemes) {
      const { page, context } = await openPage(browser, svc.url, { width: halves[width] * 2, scheme });
      try {
        await use(page, `${width}-${scheme}`, halves[width]);
      } finally {
        await context.close();
      }
    }
  }
}

/** Runs in the page: shows two documents beside one another, each as high as it is. */
async function placeSideBySide([left, right, width]) {
  document.body.style.cssText = 'margin:0;display:flex';
  const frames = [left, right].map((html) => {
    const frame = Object.assign(document.createElement('iframe'), { srcdoc: html });
    frame.style.cssText = `width:${width}px;border:0;height:100px`;
    document.body.append(frame);
    return frame;
  });
  await Promise.all(frames.map((frame) => new Promise((loaded) => frame.addEventListener('load', loaded))));
  for (const frame of frames) frame.style.height = `${Math.min(frame.contentDocument.documentElement.scrollHeight, 6000)}px`;
}

/** Runs in the page: the elements of a page of ours as GitHub has them, without what our styles hang on. */
function withGitHubStyle(html) {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  const main = body.querySelector('main');
  for (const each of main.querySelectorAll('.anchor, figure')) each.remove();
  for (const each of main.querySelectorAll('.scroll, .code')) each.replaceWith(...each.childNodes);
  for (const task of main.querySelectorAll('.task')) {
    task.className = 'task-list-item';
    task.parentElement.className = 'contains-task-list';
    task.querySelector('input').className = 'task-list-item-checkbox';
  }
  return main.innerHTML;
}

/** Runs in the page: puts what mermaid.js draws of a source beside our figure, or below it on a phone. */
async function drawWithMermaid([source, scheme]) {
  mermaid.initialize({ startOnLoad: false, theme: scheme === 'dark' ? 'dark' : 'default' });
  const ours = document.querySelector('figure');
  const theirs = ours.cloneNode();
  const main = document.querySelector('main');
  main.replaceChildren(ours, theirs);
  if (innerWidth > 600) main.style.cssText = 'max-width:none;display:grid;grid-template-columns:1fr 1fr;gap:1rem;align-items:start';
  theirs.innerHTML = (await mermaid.render('theirs', source, theirs)).svg;
}

const [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
try {
  for (const { name, type, content } of await readSources('documents')) {
    const { slug } = await svc.deploy({ type, content, ...(type !== 'markdown' && { title: name }) });
    const html = await (await fetch(`${svc.url}/${slug}`)).text();
    await inEveryScheme(async (page, way, half) => {
      if (type === 'markdown') {
        await page.goto('about:blank');
        const theirs = await page.evaluate(withGitHubStyle, html);
        const styled = `<!doctype html><meta charset=utf-8><meta name=color-scheme content="light dark"><style>${github}body{margin:0}.markdown-body{padding:24px}</style><div class="markdown-body">${theirs}</div>`;
        await page.evaluate(placeSideBySide, [html, styled, half]);
      } else {
        await page.setViewportSize({ width: half, height: 900 });
        await page.goto(`${svc.url}/${slug}`);
      }
      await shoot(page, `beside-${name}-${way}`);
    });
  }
  for (const { name, type, content } of await readSources('diagrams')) {
    const { slug } = await svc.deploy({ type, content });
    await inEveryScheme(async (page, way, half) => {
      // A phone has no room for two beside one another.
      if (half < 600) await page.setViewportSize({ width: half, height: 740 });
      await page.goto(`${svc.url}/${slug}`);
      // The page has no scripts of its own, and Chromium may still run ours in it.
      await page.addScriptTag({ path: library });
      await page.evaluate(drawWithMermaid, [content, way.split('-')[1]]);
      await shoot(page, `beside-${name}-${way}`);
    });
  }
} finally {
  await browser.close();
  await svc.stop();
}
