// Files of visitors run as nothing: two hundred polyglots, uploaded by the page's runtime, then opened, framed, and asked for as scripts,
// styles, workers and modules of the page's own origin.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

/** Part of every address that only a file that runs asks for. */
const RAN = 'a-file-has-run';
const run = `self.ran=1;fetch('/${RAN}');`;
const html = `<!doctype html><title>${RAN}</title><script>${run}</script><img src=x onerror="${run}"><style>:root{--ran:1}</style>`;
const style = `:root{--ran:1}body{background:url(/${RAN})}`;
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const bytes = (...parts) => Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
/** Beginnings by which something takes a file for what it is. */
const heads = {
  nothing: bytes(''),
  gif: bytes('GIF89a=1;//'),
  'gif in a comment': bytes('GIF89a/*', '\0\0\0\0', '*/=1;'),
  jpeg: bytes('\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0'),
  'jpeg in a comment': bytes('\xff\xd8\xff\xe0/*', 'x'.repeat(0x2f28), '*/'),
  png: Buffer.from(png, 'base64'),
  webp: bytes('RIFF/*\0\0WEBPVP8 */=1;'),
  bmp: bytes('BM=1;//'),
  wave: bytes('RIFF=1;/WAVEfmt '),
  mp3: bytes('ID3\x04=1;//'),
  mp4: bytes('\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41'),
  ogg: bytes('OggS\0'),
  flac: bytes('fLaC=1;//'),
  webm: bytes('\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm'),
  pdf: bytes('%PDF-1.7\n'),
  zip: bytes('PK\x03\x04'),
  wasm: bytes('\0asm\x01\0\0\0'),
  'byte order mark': bytes('\xef\xbb\xbf'),
  'utf-16': bytes('\xff\xfe'),
  xml: bytes('<?xml version="1.0"?>'),
};
/** What runs, if anything takes the file for it. */
const tails = {
  html: bytes(html),
  script: bytes(`\n${run}`),
  module: bytes(`\n${run}export default 1;`),
  style: bytes(`\n}${style}`),
  svg: bytes(`<svg xmlns="http://www.w3.org/2000/svg" onload="${run}"><script>${run}</script></svg>`),
  xhtml: bytes(`<html xmlns="http://www.w3.org/1999/xhtml"><script>${run}</script></html>`),
  xslt: bytes(`<?xml-stylesheet type="text/xsl" href="#s"?><x/>`, html),
  manifest: bytes('CACHE MANIFEST\n', html),
  'utf-16 html': Buffer.from(html, 'utf16le'),
  zip: bytes(html, 'PK\x05\x06', '\0'.repeat(18)),
};
const names = ['a.html', 'a.svg', 'a.js', 'a.png', 'a.css', 'a.xhtml', 'a.pdf', 'a.mjs', 'a', 'a.htm\0.png'];

let svc, browser, origin;

before(async () => {
  [svc, browser] = await Promise.all([
    startSvc({
      limits: {
        ...Object.fromEntries(['deploy', 'op', 'owner', 'upload', 'upload_deployment', 'file'].flatMap((rule) => [
          [`${rule}_per_minute`, 100000],
          [`${rule}_burst`, 100000],
        ])),
      },
    }),
    startBrowser(),
  ]);
  const ask = await svc.owner('acme');
  const { id, url } = await ask('POST', '', { name: 'Files' });
  await ask('POST', `/${id}/backend`, { ddl: 'CREATE TABLE photos (file TEXT REFERENCES svc_files(id) ON DELETE CASCADE);' });
  await ask('PUT', `/${id}/backend/actions`, {
    actions: [
      { name: 'add', sql: 'INSERT INTO photos (file) VALUES (:svc_file)', files: { anonymous: true, sizes: [64] } },
      { name: 'see', sql: 'SELECT 1 FROM photos WHERE file = :svc_file', files: { embed: true } },
    ],
  });
  const content = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title><h1>Page</h1></html>';
  await ask('POST', `/${id}/frontends`, { type: 'html', content, requested_slug: 'page' });
  origin = new URL(url).origin;
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Uploads a file by the page's runtime; answers its document, or the code of the refusal. */
const upload = (page, name, file) =>
  page.evaluate(
    async ([name, base64]) => {
      const file = new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], name, { type: 'text/html' });
      try {
        return (await svc.files.upload('add', file)).file;
      } catch (error) {
        return { code: error.code };
      }
    },
    [name, file.toString('base64')],
  );

/** Asks for a file as everything that a page can run. */
const use = (page, id) =>
  page.evaluate(async (id) => {
    const url = svc.files.url('see', id);
    const settled = (element, source) =>
      new Promise((done) => {
        element.onload = element.onerror = done;
        Object.assign(element, source);
        document.body.append(element);
        setTimeout(done, 500);
      });
    const make = (tag) => document.createElement(tag);
    const worker = (Kind, options) =>
      new Promise((done) => {
        const made = new Kind(url, options);
        made.onerror = done;
        setTimeout(done, 100);
      });
    const refused = (work) => work.then(() => false, () => true);
    const [, , , , , , , imported, registered] = await Promise.all([
      settled(make('iframe'), { src: url }),
      settled(make('embed'), { src: url }),
      settled(make('object'), { data: url }),
      settled(make('script'), { src: url }),
      settled(make('script'), { type: 'module', src: url }),
      settled(make('link'), { rel: 'stylesheet', href: url }),
      worker(Worker).then(() => worker(Worker, { type: 'module' })),
      refused(import(url)),
      refused(navigator.serviceWorker ? navigator.serviceWorker.register(url) : Promise.reject(new Error('none'))),
    ]);
    const styled = getComputedStyle(document.documentElement).getPropertyValue('--ran');
    document.body.replaceChildren();
    return { imported, registered, ran: self.ran, styled };
  }, id);

test('two hundred polyglots run as nothing', { timeout: 600_000 }, async () => {
  const { page, context } = await openPage(browser, origin);
  const ran = [];
  context.on('request', (request) => request.url().includes(RAN) && ran.push(request.url()));
  await page.goto(`${origin}/page`);
  let number = 0;
  const taken = [];
  for (const [head, begin] of Object.entries(heads)) {
    for (const [tail, end] of Object.entries(tails)) {
      const what = `${head} and ${tail}`;
      const file = await upload(page, names[number % names.length], bytes(begin, end));
      number += 1;
      // A broken picture is refused.
      if (file.code) {
        assert.equal(file.code, 'render_failed', what);
        continue;
      }
      taken.push([what, file.id]);
      const found = await use(page, file.id);
      assert.deepEqual(found, { imported: true, registered: true, ran: undefined, styled: '' }, what);
      assert.deepEqual(ran, [], what);
    }
  }
  assert.equal(number, 200);
  assert.ok(taken.length > 100, String(taken.length));
  for (const [what, id] of taken) {
    // What is saved is no navigation.
    await page.goto(`${origin}/page/api/files/see/${id}`).catch((error) => assert.match(String(error), /Download|ERR_ABORTED/, what));
    assert.notEqual(await page.title(), RAN, what);
    assert.equal(await page.evaluate(() => self.ran), undefined, what);
    assert.deepEqual(ran, [], what);
  }
  await context.close();
});

test('the runtime tells progress, gives addresses of sizes, and stops', async () => {
  const { page, context } = await openPage(browser, origin);
  await page.goto(`${origin}/page`);
  const found = await page.evaluate(async (base64) => {
    const picture = new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], 'dot.png');
    const told = [];
    const { file, result } = await svc.files.upload('add', picture, { onProgress: (progress) => told.push(progress) });
    const shown = await new Promise((done) => {
      const image = new Image();
      image.onload = () => done([image.naturalWidth, image.naturalHeight]);
      image.onerror = () => done('not shown');
      image.src = svc.files.url('see', file.id, { size: 64 });
    });
    const stop = new AbortController();
    const stopped = svc.files.upload('add', new Blob([new Uint8Array(1 << 20)]), { signal: stop.signal }).catch((error) => error.name);
    stop.abort();
    const missing = await svc.files.upload('see', picture).catch((error) => error.status);
    return { file, affected: result.rows_affected, last: told.at(-1), shown, stopped: await stopped, missing };
  }, png);
  assert.deepEqual([found.file.name, found.file.type, found.file.sizes], ['dot.png', 'image/png', [64]]);
  assert.equal(found.affected, 1);
  assert.equal(found.last.loaded, found.last.total);
  assert.deepEqual(found.shown, [1, 1]);
  assert.equal(found.stopped, 'AbortError');
  assert.equal(found.missing, 400);
  await context.close();
});
