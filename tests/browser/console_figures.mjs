// Measures the owner's console: how much the first screen sends, how long screens take, what memory they keep, and what a console
// that is open costs visitors. Run by `just console-figures`, on a machine that does nothing else.
import { Agent, request } from 'node:http';
import { button, makeShop, startConsole, table, textbox } from './lib/console.mjs';

const rounds = 5;
const visitors = { connections: 4, milliseconds: 3000 };
const plenty = ['deploy', 'op', 'op_deployment', 'owner', 'file'].flatMap((rule) => [[`${rule}_per_minute`, 10_000_000], [`${rule}_burst`, 1_000_000]]);

const sorted = (numbers) => [...numbers].sort((one, other) => one - other);
const quantile = (numbers, part) => sorted(numbers)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))];
const median = (numbers) => quantile(numbers, 0.5);
const say = (name, figure, unit, bar) => console.log(`${name.padEnd(46)} ${figure.padStart(9)} ${unit.padEnd(4)} bar ${bar}`);

const service = await startConsole({ limits: Object.fromEntries(plenty) });
try {
  const shop = await makeShop(service);
  await measureFirst();
  await measureScreens(shop);
  await measureRows(shop);
  await measureVisitors(shop);
} finally {
  await service.stop();
}

/** Loads the list of projects, with nothing kept and with everything kept. */
async function measureFirst() {
  const { page, context, close } = await service.open();
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  let requests = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
    requests += 1;
  });
  const load = async () => {
    [bytes, requests] = [0, 0];
    await page.goto('about:blank');
    const before = performance.now();
    await page.goto(`${service.origin}/`, { waitUntil: 'commit' });
    await page.waitForFunction(() => document.querySelector('main[aria-busy="false"] h1'), undefined, { polling: 'raf' });
    return performance.now() - before;
  };
  const [cold, second, warm] = [[], [], []];
  let sent;
  for (let round = 0; round < rounds; round++) {
    await session.send('Network.clearBrowserCache');
    cold.push(await load());
    sent = [bytes, requests];
    second.push(await load());
  }
  // From the third visit on the browser has the code compiled.
  await session.send('Network.disable');
  for (let round = 0; round < rounds; round++) warm.push(await load());
  say('first screen, sent with headers and answers', (sent[0] / 1024).toFixed(1), 'KB', '60');
  say('first screen, requests', String(sent[1]), '', '16');
  say('first screen, cold', median(cold).toFixed(0), 'ms', '500');
  say('first screen, second visit', median(second).toFixed(0), 'ms', '-');
  say('first screen, warm', median(warm).toFixed(0), 'ms', '200');
  await close();
}

/** Goes from screen to screen by the project's navigation, 200 times. */
async function measureScreens(shop) {
  const { page, context, visit, close } = await service.open();
  const session = await context.newCDPSession(page);
  await visit(shop.path);
  const names = await page.getByRole('navigation', { name: 'Project', exact: true }).getByRole('link').allTextContents();
  const screens = names.filter((name) => !name.startsWith('Workspace'));
  const go = (name) =>
    page.evaluate(async (name) => {
      const frame = () => new Promise((wake) => requestAnimationFrame(wake));
      const to = [...document.querySelectorAll('nav[aria-label="Project"] a')].find((one) => one.textContent === name);
      const before = performance.now();
      to.click();
      await frame();
      const isThere = () => to.getAttribute('aria-current') === 'page' && document.querySelector('main').getAttribute('aria-busy') === 'false';
      while (!isThere()) await frame();
      return performance.now() - before;
    }, name);
  const heap = async () => {
    for (let turn = 0; turn < 3; turn++) await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize;
  };
  // Every screen's code and texts are there after two rounds.
  for (const name of [...screens, ...screens]) await go(name);
  const before = await heap();
  const took = [];
  const byScreen = {};
  const walk = async (count) => {
    for (let number = 0; number < count; number++) {
      const name = screens[number % screens.length];
      took.push(await go(name));
      (byScreen[name] ??= []).push(took.at(-1));
    }
  };
  await walk(200);
  const after = await heap();
  // By now the browser has compiled what is run often, which takes memory once: what grows from here on is kept by the screens.
  await walk(200);
  const later = await heap();
  say('another screen, p50', median(took).toFixed(0), 'ms', '-');
  say('another screen, p95', quantile(took, 0.95).toFixed(0), 'ms', '100');
  for (const name of screens.filter((name) => median(byScreen[name]) > 100)) say(`  ${name}, p50`, median(byScreen[name]).toFixed(0), 'ms', '-');
  say('heap after 200 screens', ((after / before - 1) * 100).toFixed(1), '%', `10 (of ${(before / 1024 / 1024).toFixed(1)} MB)`);
  say('heap after 200 screens more', ((later / after - 1) * 100).toFixed(1), '%', '-');
  await close();
}

/** Shows 500 rows of 40 columns: from the text that has arrived to the frame that shows it. */
async function measureRows(shop) {
  const { page, visit, close } = await service.open();
  const columns = Array.from({ length: 40 }, (_, at) => `i * ${at + 1} AS c${at}`).join(', ');
  await visit(`${shop.path}/sql`);
  await textbox(page, 'SQL').fill(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT ${columns} FROM n`);
  await page.evaluate(() => {
    const read = Response.prototype.text;
    Response.prototype.text = async function () {
      const text = await read.call(this);
      window.arrived = performance.now();
      return text;
    };
  });
  const took = [];
  for (let round = 0; round < rounds; round++) {
    await page.evaluate(() => {
      window.arrived = undefined;
      document.querySelector('table tbody')?.replaceChildren();
    });
    await button(page, 'Run').click();
    took.push(
      await page.evaluate(async () => {
        const frame = () => new Promise((wake) => requestAnimationFrame(wake));
        while (!window.arrived || document.querySelectorAll('tbody td').length < 20_000) await frame();
        // Until the frame that shows it is painted.
        await frame();
        await frame();
        return performance.now() - window.arrived;
      }),
    );
  }
  await table(page, 'Result').waitFor();
  say('500 rows of 40 columns', median(took).toFixed(0), 'ms', '300');
  await close();
}

/** Calls an action as visitors do, alone and beside a console that follows the log and shows live rows. */
async function measureVisitors(shop) {
  const agent = new Agent({ keepAlive: true, maxSockets: visitors.connections });
  const address = `${service.svc.url}/${shop.page.slug}/api/op`;
  const body = JSON.stringify({ action: 'latest' });
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const refused = {};
  const call = () =>
    new Promise((done, failed) => {
      const sent = performance.now();
      const asked = request(address, { method: 'POST', agent, headers }, (answer) => {
        if (answer.statusCode !== 200) refused[answer.statusCode] = (refused[answer.statusCode] ?? 0) + 1;
        answer.resume().on('end', () => done(performance.now() - sent));
      });
      asked.on('error', failed).end(body);
    });
  const run = async () => {
    const took = [];
    const until = performance.now() + visitors.milliseconds;
    await Promise.all(
      Array.from({ length: visitors.connections }, async () => {
        while (performance.now() < until) {
          took.push(await call());
          // A visitor reads what came: the machine is never busy with visitors alone.
          await new Promise((wake) => setTimeout(wake, 5));
        }
      }),
    );
    return quantile(took, 0.99);
  };
  const { page, visit, close } = await service.open();
  await run();
  const [alone, beside] = [[], []];
  for (let round = 0; round < rounds; round++) {
    await page.goto('about:blank');
    alone.push(await run());
    await visit(`${shop.path}${round % 2 ? '/log' : '/data?table=notes'}`);
    const live = page.getByRole('switch', { name: round % 2 ? 'Follow' : 'Live', exact: true });
    if ((await live.getAttribute('aria-checked')) !== 'true') await live.click();
    beside.push(await run());
  }
  say("visitors' p99, alone", median(alone).toFixed(2), 'ms', '-');
  say("visitors' p99, a console open", median(beside).toFixed(2), 'ms', `${(1.05 * median(alone)).toFixed(2)}`);
  say("visitors' calls refused", JSON.stringify(refused), '', '{}');
  agent.destroy();
  await close();
}
