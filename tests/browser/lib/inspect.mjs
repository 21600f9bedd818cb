// What holds for every page of ours: found out in the page itself, by axe-core, and by html-validate.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { HtmlValidate, StaticConfigLoader } from 'html-validate';
import { inspectContrast } from './contrast.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
// Its rules are those of the HTML standard and of WCAG; how a document is laid out in a file is nobody's business.
const validator = new HtmlValidate(new StaticConfigLoader({ root: true, extends: ['html-validate:standard'] }));

const rules = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] };
// Not on by default: controls of at least 24 by 24 px, or with as much room.
const more = { 'target-size': { enabled: true } };

/** Watches a page from its beginning for what moves without being asked to. */
export async function watchShifts(page) {
  await page.addInitScript(() => {
    window.shifts = [];
    const watch = new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) {
        window.shifts.push(`${value.toFixed(4)} by ${sources.map(({ node }) => node?.nodeName).join(', ')}`);
      }
    });
    watch.observe({ type: 'layout-shift', buffered: true });
  });
}

/** Whether a page has moved since it was opened. */
export async function hasMoved(page) {
  // The observer is told after the frame in which it happened.
  await page.waitForTimeout(200);
  return page.evaluate(() => window.shifts.length > 0);
}

/** Answers what is wrong with a page of ours, as sentences; none is the aim. */
export async function inspect(page) {
  return [...(await inspectFit(page)), ...(await inspectContrast(page)), ...(await inspectAccess(page))];
}

/** Whether a page says what it is, fits its window, and stayed where it was; on pages without scripts too. */
export async function inspectFit(page) {
  const found = await page.evaluate(examine);
  const wrong = [];
  if (!found.title) wrong.push('the page has no title');
  if (found.language !== 'en') wrong.push(`its language is ${JSON.stringify(found.language)}`);
  if (found.heading !== 1) wrong.push(`its first heading is of level ${found.heading}`);
  if (!found.viewport.includes('width=device-width')) wrong.push('it has no viewport');
  if (found.wider > 0) wrong.push(`it is ${found.wider} px wider than the window: ${found.widest.join(', ')}`);
  for (const shift of found.shifts) wrong.push(`it moved while it was loaded: ${shift}`);
  return wrong;
}

/** Names, landmarks, sizes of what is pressed, and contrast where it is sure: what axe-core knows. */
export async function inspectAccess(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate((options) => window.axe.run(document, options), {
    runOnly: rules,
    rules: more,
    resultTypes: ['violations'],
    // A preview is a page of its own.
    iframes: false,
  });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, any }) => `${id}: ${target.join(' ')}: ${any.map(({ message }) => message).join('; ')}`),
  );
}

/** What a conformance checker has against a document. */
export async function validate(html) {
  const { results } = await validator.validateString(html);
  return results.flatMap(({ messages }) =>
    messages.map(({ ruleId, message, line, column }) => `${ruleId} at ${line}:${column}: ${message}`),
  );
}

// Runs in the page, so it stands alone.
function examine() {
  const describe = (element) => element.localName + [...element.classList].map((name) => `.${name}`).join('');
  const root = document.documentElement;
  const wider = Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth;
  const wide = (element) => element.getBoundingClientRect().right > root.clientWidth + 1;
  return {
    title: document.title.trim(),
    language: root.lang,
    heading: Number(document.querySelector('h1, h2, h3, h4, h5, h6')?.localName[1]),
    viewport: document.querySelector('meta[name=viewport]')?.content ?? '',
    wider,
    widest: wider > 0 ? [...document.querySelectorAll('body *')].filter(wide).slice(0, 5).map(describe) : [],
    shifts: window.shifts ?? [],
  };
}

/** Answers what paper would lose of a page: text that is cut off, or that stands out badly from white. */
export async function inspectPrint(page) {
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const lost = await page.evaluate(() =>
    [...document.querySelectorAll('body *')]
      .filter((element) => element.checkVisibility() && element.textContent.trim())
      .filter((element) => {
        const { overflowX, overflowY } = getComputedStyle(element);
        const cut = (way, inner, outer) => way !== 'visible' && inner > outer + 1;
        return (
          cut(overflowX, element.scrollWidth, element.clientWidth) ||
          cut(overflowY, element.scrollHeight, element.clientHeight)
        );
      })
      .map((element) => `cut off on paper: ${element.localName}.${element.className}`),
  );
  const dark = await page.evaluate(() => {
    const large = [document.documentElement, document.body, ...document.querySelectorAll('main')];
    const colours = large.map((element) => getComputedStyle(element).backgroundColor);
    return colours.filter((colour) => !/^rgba\(.*, 0\)$|^rgb\(255, 255, 255\)$/.test(colour));
  });
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wider > 0) lost.push(`${wider} px wider than the paper`);
  return [...lost, ...dark.map((colour) => `paper is ${colour}`), ...(await inspectContrast(page))];
}
