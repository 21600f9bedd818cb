// The official conformance runner against the real server: the scenarios of what the server offers.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startSvc } from '../../browser/lib/svc.mjs';
import { startIssuer, tokenOf } from '../issuer.mjs';
import { startLibraryApp, limits } from '../library.mjs';

const runner = fileURLToPath(new URL('node_modules/.bin/conformance', import.meta.url));
const bin = fileURLToPath(new URL('node_modules/.bin', import.meta.url));
const scenarios = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2026-07-28': ['server-stateless', 'tools-list', 'caching', 'http-header-validation', 'dns-rebinding-protection'],
};
/** What the runner asks for and a server of tools alone does not have, each by what is said about it. */
const notOurs = [
  // Tools that a server would have for this test alone.
  /^Not testable: server does not list the diagnostic tool/,
  // Capabilities that are not offered are -32601 here, not an empty list.
  /^(prompts\/list|resources\/list|resources\/templates\/list) returned JSON-RPC error -32601/,
];

const issuer = await startIssuer();
const svc = await startSvc({ limits, tables: issuer.tables });
const { credential } = await svc.operate('namespace', 'create', 'runner');
const carriers = [await proxyWithCredential(credential), await proxyWithCredential(await tokenOf(issuer, `${svc.url}/mcp`, 'somebody'))];
const endpoints = {
  '/mcp': `${svc.url}/mcp`,
  '/mcp with a key': carriers[0].url,
  "/mcp with a user's token": carriers[1].url,
  "an app's own": await startLibraryApp(svc),
};
const directory = await mkdtemp(join(tmpdir(), 'svc-conformance-'));
let failed = 0;
try {
  const all = Object.entries(endpoints).flatMap(([at, url]) =>
    Object.entries(scenarios).flatMap(([version, names]) => names.map((name) => ({ at, url, version, name }))),
  );
  for (const [number, { at, url, version, name }] of all.entries()) {
    const output = join(directory, `${number}-${name}`);
    await run(['server', '--url', url, '--scenario', name, '--spec-version', version, '-o', output]);
    const checks = await results(output);
    const wrong = checks.filter(
      ({ status, errorMessage }) => status === 'FAILURE' && !notOurs.some((known) => known.test(errorMessage)),
    );
    const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
    if (passed === 0) wrong.push({ id: name, errorMessage: 'no check passed' });
    console.log(`${at} ${version} ${name}: ${passed} of ${checks.length} checks passed, ${wrong.length} failed`);
    for (const { id, errorMessage } of wrong) console.log(`  ${id}: ${errorMessage}`);
    failed += wrong.length;
  }
} finally {
  for (const carrier of carriers) carrier.stop();
  await svc.stop();
  issuer.stop();
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;

/** The tool endpoint with a credential on every request, since the runner sends none: what it sends is passed on as it is. */
async function proxyWithCredential(credential) {
  const { hostname, port, host } = new URL(svc.url);
  const server = createServer((from, to) => {
    const own = from.headers.host === `localhost:${server.address().port}`;
    const headers = { ...from.headers, authorization: `Bearer ${credential}`, host: own ? host : from.headers.host };
    const { method, url: path } = from;
    const asked = request({ hostname, port, method, path, headers }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
    });
    asked.on('error', () => to.destroy());
    from.pipe(asked);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  return {
    url: `http://localhost:${server.address().port}/mcp`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Runs the runner, whose own exit code counts what is not ours, too. */
function run(args) {
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  return new Promise((done) => execFile(runner, args, { env }, done));
}

async function results(output) {
  const [folder] = await readdir(output);
  return JSON.parse(await readFile(join(output, folder, 'checks.json'), 'utf8'));
}
