// A page on its project's origin calls its backend, and shows what it answers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const ddl = `
  CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, nights INTEGER NOT NULL DEFAULT 1);
  INSERT INTO guests (name, nights) VALUES ('Ada <b>Lovelace</b>', 3), ('Grace', 2);
`;

const actions = [
  { name: 'guests', sql: 'SELECT name, nights FROM guests WHERE nights >= :least ORDER BY id' },
  { name: 'check_in', sql: 'INSERT INTO guests (name) VALUES (:name) RETURNING id, name' },
  { name: 'echo', sql: 'SELECT :value AS value' },
  { name: 'me', sql: 'SELECT :svc_user_id AS id' },
];

// Its own script, as an author would write it.
const content = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Guest book</title><link rel="icon" href="data:,"></head>
<body><main><h1>Guests</h1><ul></ul><form><label>Name <input name="name"></label><button>Check in</button></form><p role="status"></p></main>
<script>
  const list = document.querySelector('ul');
  const status = document.querySelector('[role=status]');
  async function show() {
    const { rows } = await svc.db.op('guests', { least: 1 });
    list.replaceChildren(...rows.map(({ name, nights }) => {
      const item = document.createElement('li');
      item.textContent = name + ': ' + nights;
      return item;
    }));
  }
  document.querySelector('form').onsubmit = async (event) => {
    event.preventDefault();
    try {
      const { rows } = await svc.db.op('check_in', { name: event.target.name.value });
      await show();
      status.textContent = 'Welcome, ' + rows[0].name;
    } catch (error) {
      status.textContent = error.name + ' ' + error.code + ' ' + error.status;
    }
  };
  show();
</script></body></html>`;

let svc;
let browser;
let room;

before(async () => {
  [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const ask = await svc.owner('acme');
  const { id } = await ask('POST', '', { name: 'House' });
  await ask('POST', `/${id}/backend`, { ddl });
  await ask('PUT', `/${id}/backend/actions`, { actions });
  room = await ask('POST', `/${id}/frontends`, { type: 'html', content, requested_slug: 'room' });
});

after(async () => {
  await browser?.close();
  await svc?.stop();
});

/** Opens the page of the house, does something there, and answers what that answers. */
async function onPage(deed) {
  const { page, context, faults } = await openPage(browser, new URL(room.url).origin);
  try {
    await page.goto(room.url);
    await page.getByRole('listitem').first().waitFor();
    return await deed(page, faults);
  } finally {
    await context.close();
  }
}

/** Calls an action in the page; answers its result, or what it failed with. */
function callAction(page, action, params) {
  return page.evaluate(
    async ([action, params]) => {
      try {
        return { result: await svc.db.op(action, params) };
      } catch (error) {
        const { name, code, status, message, details } = error;
        const kinds = [error instanceof svc.SvcError, error instanceof Error];
        return { name, code, status, message, details, kinds };
      }
    },
    [action, params],
  );
}

test('it is served on an origin of its own', () => {
  const { hostname, port } = new URL(room.url);
  assert.equal(hostname, 'house-acme.localhost');
  assert.equal(port, new URL(svc.url).port);
});

test('it shows the rows of an action, as text', async () => {
  await onPage(async (page, faults) => {
    const shown = await page.getByRole('listitem').allTextContents();
    assert.deepEqual(shown.slice(0, 2), ['Ada <b>Lovelace</b>: 3', 'Grace: 2']);
    assert.equal(await page.locator('li b').count(), 0);
    assert.deepEqual(faults, [], 'nothing else is loaded, and nothing complains');
  });
});

test('a visitor writes, and the next one reads it', async () => {
  await onPage(async (page, faults) => {
    await page.getByLabel('Name').fill('Alan');
    await page.getByRole('button').click();
    await page.getByText('Welcome, Alan').waitFor();
    assert.deepEqual(faults, []);
  });
  await onPage(async (page) => {
    const shown = await page.getByRole('listitem').allTextContents();
    assert.ok(shown.includes('Alan: 1'), shown.join());
    // A name that is taken breaks a constraint; the page is told which.
    await page.getByLabel('Name').fill('Alan');
    await page.getByRole('button').click();
    await page.getByText('SvcError constraint_violation 409').waitFor();
  });
});

test('a result has its whole shape', async () => {
  await onPage(async (page) => {
    const { result } = await callAction(page, 'guests', { least: 3 });
    const expected = {
      columns: ['name', 'nights'],
      rows: [{ name: 'Ada <b>Lovelace</b>', nights: 3 }],
      rows_affected: 0,
      truncated: false,
    };
    assert.deepEqual(result, expected);
    for (const value of [null, 0, -1.5, 'Grüße', '', { base64: 'AAEC/w==' }]) {
      assert.deepEqual((await callAction(page, 'echo', { value })).result.rows, [{ value }]);
    }
    assert.deepEqual((await callAction(page, 'echo', { value: true })).result.rows, [{ value: 1 }]);
  });
});

const failing = {
  'an action that is not there': ['nothing', {}, 404, 'not_found'],
  'params that differ from the declared': ['guests', { most: 1 }, 400, 'params_mismatch'],
  'a reserved param': ['me', { svc_user_id: 'usr_x' }, 400, 'reserved_param'],
  'an action about its visitor': ['me', {}, 401, 'identity_required'],
  'a broken constraint': ['check_in', { name: 'Grace' }, 409, 'constraint_violation'],
};

for (const [what, [action, params, status, code]] of Object.entries(failing)) {
  test(`${what} is an SvcError with its code and status`, async () => {
    await onPage(async (page) => {
      const error = await callAction(page, action, params);
      assert.deepEqual(error.kinds, [true, true], JSON.stringify(error));
      assert.deepEqual([error.name, error.code, error.status], ['SvcError', code, status]);
      assert.ok(error.message);
      if (code === 'params_mismatch') {
        assert.deepEqual([error.details.missing, error.details.extra], [['least'], ['most']]);
      }
    });
  });
}

test('the runtime cannot be changed', async () => {
  await onPage(async (page) => {
    const found = await page.evaluate(() => {
      const parts = [svc, svc.db, svc.auth, svc.ws, svc.payments];
      const { op } = svc.db;
      const tries = [
        () => (window.svc = {}),
        () => delete window.svc,
        () => (svc.db = {}),
        () => (svc.db.op = () => 'stolen'),
        () => (svc.more = 1),
      ];
      for (const change of tries) {
        try {
          change();
        } catch {
          // Refused aloud is refused, too.
        }
      }
      return { frozen: parts.map(Object.isFrozen), same: svc.db.op === op && parts[0] === window.svc, more: 'more' in svc };
    });
    assert.deepEqual(found, { frozen: [true, true, true, true, true], same: true, more: false });
  });
});

test('a server that does not answer is an SvcError, too', async () => {
  await onPage(async (page) => {
    await page.route('**/api/op', (route) => route.abort());
    const error = await callAction(page, 'guests', { least: 1 });
    assert.deepEqual([error.name, error.status], ['SvcError', 0], JSON.stringify(error));
    assert.ok(error.code && error.message);
  });
});
