// The inspector's command line, as it comes: it lists the tools and does the job that calls every action.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startSvc } from '../../browser/lib/svc.mjs';
import { startIssuer, tokenOf, userOfToken } from '../issuer.mjs';
import { listedActions, runJob } from '../job.mjs';
import { startLibraryApp, limits } from '../library.mjs';

const inspector = fileURLToPath(new URL('node_modules/.bin/mcp-inspector', import.meta.url));
const bin = fileURLToPath(new URL('node_modules/.bin', import.meta.url));

const issuer = await startIssuer();
const svc = await startSvc({ limits, tables: issuer.tables });
try {
  // The first start compiles the guests.
  while (!(await fetch(new URL('/readyz', svc.url))).ok) await new Promise((done) => setTimeout(done, 250));
  const { credential } = await svc.operate('namespace', 'create', 'inspector');
  await runEveryMethod('a key', credential);
  const token = (name) => tokenOf(issuer, `${svc.url}/mcp`, name);
  const { user_id: colleague } = await userOfToken(svc, await token('colleague'));
  // A user does what a key may not, too.
  await runEveryMethod("a user's token", await token('somebody'), { colleague });
  const visit = async (...args) => run(app, undefined, args);
  const app = await startLibraryApp(svc);
  const found = await visit('--method', 'tools/list');
  assert.ok(found.tools.some(({ name }) => name === 'add_book'));
  const added = await visit('--method', 'tools/call', '--tool-name', 'add_book', '--tool-arg', 'title=Emma', '--tool-arg', 'by=Jane');
  assert.equal(added.structuredContent.rows_affected, 1);
} finally {
  await svc.stop();
  issuer.stop();
}

/** Lists the tools and calls every action. */
async function runEveryMethod(by, credential, users) {
  const inspect = (...args) => run(`${svc.url}/mcp`, credential, args);
  const { tools } = await inspect('--method', 'tools/list');
  assert.equal(tools.length, 6);
  const called = await runJob(({ name, arguments: given }) => {
    const pairs = Object.entries(given).flatMap(([key, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return ['--tool-arg', `${key}=${text}`];
    });
    return inspect('--method', 'tools/call', '--tool-name', name, ...pairs);
  }, users);
  assert.deepEqual(called, listedActions(tools));
  console.log(`the inspector called ${called.length} actions with ${by}`);
}

/** Runs the inspector, whose exit code says whether the tool failed; its output is the result in either case. */
function run(url, credential, args) {
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const header = credential ? ['--header', `Authorization: Bearer ${credential}`] : [];
  const all = ['--cli', url, '--transport', 'http', ...header, ...args];
  return new Promise((done, fail) => {
    execFile(inspector, all, { env }, (error, stdout, stderr) => {
      try {
        done(JSON.parse(stdout));
      } catch {
        fail(new Error(`no result: ${stdout}${stderr}${error}`));
      }
    });
  });
}
