// A frontend on the origin of its project, where it has the page's runtime, and elsewhere, where nothing has.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const head = '<title>Room</title><link rel="icon" href="data:,">';
const content = `<!doctype html><html lang="en"><head>${head}</head><body><h1>Room</h1></body></html>`;
let svc;
let browser;
let project;
let frontend;
let ask;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const { credential } = await svc.operate('namespace', 'create', 'acme');
  ask = async (method, path, body) => {
    const answer = await fetch(`${svc.url}/api/v1/projects${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}` },
      body: body && JSON.stringify(body),
    });
    const document = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(document)}`);
    return document;
  };
  project = await ask('POST', '', { name: 'House' });
  frontend = await ask('POST', `/${project.id}/frontends`, { type: 'html', content, requested_slug: 'room' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens a page in a browser of its own; answers what `look` finds there, and what went wrong. */
async function evaluateOn(url, look) {
  const { page, context, faults } = await openPage(browser, new URL(url).origin);
  try {
    const answer = await page.goto(url);
    assert.equal(answer.status(), 200, url);
    await page.getByRole('heading', { name: 'Room' }).waitFor();
    return { found: await page.evaluate(look), faults };
  } finally {
    await context.close();
  }
}

test('a frontend at home has the runtime, and nobody changes it', async () => {
  assert.equal(new URL(frontend.url).origin, project.url);
  const { found, faults } = await evaluateOn(frontend.url, () => {
    const own = Object.getOwnPropertyDescriptor(window, 'svc');
    const attempt = (change) => {
      try {
        change();
      } catch {
        // Refusing aloud is as good as in silence.
      }
    };
    attempt(() => (window.svc.slug = 'other'));
    attempt(() => (window.svc.more = true));
    attempt(() => (window.svc = null));
    attempt(() => delete window.svc);
    return {
      origin: window.origin,
      first: document.head.firstElementChild?.src,
      type: typeof window.svc,
      frozen: Object.isFrozen(window.svc),
      fixed: own && !own.writable && !own.configurable,
      slug: window.svc?.slug,
      more: window.svc?.more,
    };
  });
  assert.match(found.first, /\/_svc\/runtime\/[0-9a-f]+\.js$/);
  delete found.first;
  assert.deepEqual(found, {
    origin: project.url,
    type: 'object',
    frozen: true,
    fixed: true,
    slug: 'room',
    more: undefined,
  });
  assert.deepEqual(faults, []);
});

test('the origin leads to its only frontend', async () => {
  const { found } = await evaluateOn(`${project.url}/`, () => ({ at: location.pathname, slug: window.svc.slug }));
  assert.deepEqual(found, { at: '/room', slug: 'room' });
});

test('a preview has no runtime', async () => {
  const path = `/${project.id}/frontends/room/revisions`;
  const { active_revision_id: live } = await ask('GET', path);
  const draft = await ask('POST', path, { base_revision_id: live, content: content.replace('lang="en"', 'lang="de"') });
  const urls = [draft.preview_url, draft.preview_url.replace(draft.revision.revision_id, live)];
  for (const url of urls) {
    const { found, faults } = await evaluateOn(url, () => ({
      svc: 'svc' in window,
      scripts: document.scripts.length,
      origin: window.origin,
    }));
    assert.deepEqual(found, { svc: false, scripts: 0, origin: 'null' }, url);
    assert.deepEqual(faults, []);
  }
});

test('a quick share has no runtime', async () => {
  const { url } = await svc.deploy({ content });
  const { found, faults } = await evaluateOn(url, () => ({ svc: 'svc' in window, scripts: document.scripts.length }));
  assert.deepEqual(found, { svc: false, scripts: 0 });
  assert.deepEqual(faults, []);
});
