// A stranger's page runs in an origin that holds nothing, and reaches nothing that a visitor may see elsewhere.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const SECRET = 'the treasure lies under the bridge';
let svc;
let browser;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens a stranger's page in a browser that has unlocked another; answers what its script found. */
async function runOnStrangersPage(script) {
  const { slug } = await svc.deploy({ name: 'secret', password: 'opensesame', content: `<h1>${SECRET}</h1>` });
  const { page, context } = await openPage(browser, svc.url);
  try {
    await page.goto(`${svc.url}/${slug}`);
    await page.getByLabel('Password').fill('opensesame');
    await page.getByRole('button').click();
    await page.getByText(SECRET).waitFor();
    const evil = await svc.deploy({
      content: `<!doctype html><title>evil</title><button>go</button><script>
        const secret = '/${slug}';
        const tell = (found) => { window.found = String(found); };
        document.querySelector('button').onclick = async () => {
          try { tell(await (${script})(secret)); } catch (error) { tell('refused: ' + error); }
        };
      </script>`,
    });
    await page.goto(evil.url);
    await page.getByRole('button').click();
    await page.waitForFunction(() => window.found !== undefined);
    return await page.evaluate(() => window.found);
  } finally {
    await context.close();
  }
}

test('its origin is opaque', async () => {
  assert.equal(await runOnStrangersPage(() => window.origin), 'null');
});

test('it has no cookies and no storage', async () => {
  const refused = /refused: SecurityError/;
  assert.match(await runOnStrangersPage(() => document.cookie), refused);
  assert.match(await runOnStrangersPage(() => localStorage.length), refused);
  assert.match(await runOnStrangersPage(() => sessionStorage.length), refused);
  assert.match(await runOnStrangersPage(() => indexedDB.open('x') && 'opened'), refused);
});

test('it cannot register a worker for the origin', async () => {
  const found = await runOnStrangersPage(() => navigator.serviceWorker.register('/x').then(() => 'registered'));
  assert.doesNotMatch(found, /^registered/);
});

const reading = {
  'a fetch with cookies': async (secret) => (await fetch(secret, { credentials: 'include' })).text(),
  'a fetch without': async (secret) => (await fetch(secret)).text(),
  'a fetch that may not read': async (secret) => (await fetch(secret, { mode: 'no-cors', credentials: 'include' })).text(),
  'the source': async (secret) => (await fetch(`${secret}/raw`, { credentials: 'include' })).text(),
  'an old-fashioned request': (secret) =>
    new Promise((resolve) => {
      const request = new XMLHttpRequest();
      request.open('GET', secret);
      request.withCredentials = true;
      request.onloadend = () => resolve(request.responseText);
      request.send();
    }),
  'a frame': (secret) =>
    new Promise((resolve, reject) => {
      const frame = document.createElement('iframe');
      frame.onload = () => {
        try {
          resolve(frame.contentWindow.document.body.textContent);
        } catch (error) {
          reject(error);
        }
      };
      frame.src = secret;
      document.body.append(frame);
    }),
  'a window': (secret) =>
    new Promise((resolve, reject) => {
      const opened = window.open(secret);
      setTimeout(() => {
        try {
          resolve(opened.document.body.textContent);
        } catch (error) {
          reject(error);
        }
      }, 500);
    }),
};

for (const [how, script] of Object.entries(reading)) {
  test(`it cannot read a page that its visitor has unlocked, by ${how}`, async () => {
    const found = await runOnStrangersPage(script);
    assert.doesNotMatch(found, /treasure/);
  });
}

test('it cannot burn a one-time page', async () => {
  const once = await svc.deploy({ one_time: true, content: '<h1>Still here</h1>' });
  const found = await runOnStrangersPage(`async () => {
    const answer = await fetch('/${once.slug}', { method: 'POST' });
    return answer.status + ' ' + await answer.text();
  }`);
  assert.doesNotMatch(found, /Still here/);
  const { page, context } = await openPage(browser, svc.url);
  try {
    await page.goto(once.url);
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'Still here' }).waitFor();
  } finally {
    await context.close();
  }
});

test('it cannot put the form of another page into a frame', async () => {
  const once = await svc.deploy({ one_time: true, content: '<h1>Once</h1>' });
  const { page, context } = await openPage(browser, svc.url);
  try {
    const evil = await svc.deploy({ content: `<!doctype html><title>evil</title><iframe src="/${once.slug}"></iframe>` });
    await page.goto(evil.url);
    await page.waitForLoadState('networkidle');
    const frame = page.frames().find((frame) => frame !== page.mainFrame());
    assert.equal(await frame.getByRole('button').count(), 0);
  } finally {
    await context.close();
  }
});

/** Runs a stranger's script at a click, beside the landing page of the same host; answers what it found. */
async function runBesideLandingPage(script) {
  const { page, context } = await openPage(browser, svc.url);
  try {
    const { url } = await svc.deploy({
      content: `<!doctype html><title>evil</title><button>go</button><script>
        document.querySelector('button').onclick = async () => {
          try { window.found = String(await (${script})()); } catch (error) { window.found = 'refused: ' + error; }
        };
      </script>`,
    });
    await page.goto(url);
    await page.getByRole('button').click();
    await page.waitForFunction(() => window.found !== undefined);
    return { found: await page.evaluate(() => window.found), frames: page.frames(), cookies: await context.cookies() };
  } finally {
    await context.close();
  }
}

test('it cannot reach into a landing page that it opens', async () => {
  const { found } = await runBesideLandingPage(async () => {
    const opened = window.open('/');
    await new Promise((resolve) => setTimeout(resolve, 1000));
    opened.postMessage({ html: '<h1>forged</h1>', top: 1 }, '*');
    return opened.document.body.textContent;
  });
  assert.match(found, /^refused: SecurityError/);
});

test('it cannot put the landing page or its stage into a frame', async () => {
  for (const path of ['/', '/_svc/preview']) {
    const { found } = await runBesideLandingPage(`() => new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.src = '${path}';
      addEventListener('message', () => resolve('it answers'));
      frame.onload = () => {
        frame.contentWindow.postMessage({ html: '<h1>forged</h1>', top: 0 }, '*');
        setTimeout(() => resolve('nothing'), 300);
      };
      document.body.append(frame);
    })`);
    assert.equal(found, 'nothing', path);
  }
});

test('what it may ask of the API is what anybody may', async () => {
  const { found, cookies } = await runBesideLandingPage(async () => {
    const ask = (path, options) => fetch(path, options).then((answer) => answer.status);
    const list = await ask('/api/v1/projects');
    const tool = await fetch('/mcp', {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'manage_project', arguments: { action: 'list' } } }),
    }).then((answer) => answer.json());
    return [list, tool.result?.isError, await ask('/', { credentials: 'omit' })].join();
  });
  assert.equal(found, '401,true,200');
  assert.deepEqual(cookies, []);
});
