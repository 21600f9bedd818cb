// The real server, on a free port, with a data directory of its own. With SVC_CLUSTER in the environment it is a node of two on this
// machine, which has neither control nor, at first, any database; that takes Debian's `postgresql`.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
export const binary = resolve(process.env.SVC_BIN ?? join(root, 'target/debug/svc'));
const run = promisify(execFile);
const isCluster = Boolean(process.env.SVC_CLUSTER);
// Compiled guests, which all servers of all tests share: below cargo's target directory, as the tests in Rust have it.
export const cache = join(dirname(binary), '../tests-cache');

const plenty = ['deploy', 'preview', 'auth', 'op', 'owner', 'mcp', 'sign_in'].flatMap((rule) => [
  [`${rule}_per_minute`, 100000],
  [`${rule}_burst`, 100000],
]);

/** Begins a server; its line on standard output that says where it is begins as `pattern` says. */
function beginServer(config, directory, options) {
  const data = join(directory, 'data');
  const command = ['serve', '--listen', '127.0.0.1:0', '--config', config, '--data', data, '--cache', cache, ...options];
  const child = spawn(binary, command, { stdio: ['ignore', 'pipe', 'pipe'] });
  const read = (line) => ({ url: `http://localhost:${new URL(line.replace(/^ready /, '')).port}`, data });
  return { child, pattern: /^ready /, read };
}

/** Begins PostgreSQL and two nodes; clients ask the second one. */
function beginCluster(config) {
  const command = [binary, '--port', '0', '--at', 'n2', '--settings', config];
  const child = spawn(join(root, 'packaging/try-cluster'), command, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SVC_CACHE: cache },
  });
  return { child, pattern: /^\{/, read: JSON.parse };
}

/**
 * Starts a server, with limits that tests of other things do not meet, with guests of its own by their worlds, with lines of its
 * configuration, and with what else its command takes; `stop` ends it and takes its directory away.
 */
export async function startSvc({ limits = Object.fromEntries(plenty), guests = {}, tables = [], options = [] } = {}) {
  if (isCluster && (options.length || Object.keys(guests).length)) {
    throw new Error('This test is of one machine: run it without SVC_CLUSTER.');
  }
  const directory = await mkdtemp(join(tmpdir(), 'svc-browser-'));
  const config = join(directory, 'svc.toml');
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const lines = Object.entries(limits).map(([name, value]) => `${name} = ${value}`);
  await writeFile(config, ['[limits]', ...lines, ...tables].join('\n'));
  for (const [world, component] of Object.entries(guests)) {
    const folder = join(directory, 'data/guests', world);
    await mkdir(folder, { recursive: true });
    await copyFile(component, join(folder, '000001-test.wasm'));
  }
  const { child, pattern, read } = isCluster ? beginCluster(config) : beginServer(config, directory, options);
  let log = '';
  child.stderr.on('data', (chunk) => (log += chunk));
  const exited = once(child, 'exit');
  const said = new Promise((found) => {
    createInterface(child.stdout).on('line', (line) => (pattern.test(line) ? found(line) : (log += `${line}\n`)));
  });
  const line = await Promise.race([
    said,
    exited.then(() => Promise.reject(new Error(`svc ended before it was ready:\n${log}`))),
    once(child, 'error').then(([error]) => Promise.reject(error)),
  ]);
  const { url, data } = read(line);
  // Publishing waits for guests that are yet to be compiled, and not for as long as a machine at work may take.
  const deadline = Date.now() + 180_000;
  while ((await fetch(`${url}/readyz`)).status !== 200) {
    if (Date.now() > deadline) throw new Error(`svc is not ready:\n${log}`);
    await new Promise((wake) => setTimeout(wake, 100));
  }

  return {
    url,
    data,
    cache,
    /** Publishes a share; answers it. */
    async deploy(share) {
      const answer = await fetch(`${url}/api/v1/deploy`, { method: 'POST', body: JSON.stringify(share) });
      const body = await answer.json();
      if (answer.status !== 201) throw new Error(`not published: ${JSON.stringify(body)}`);
      return body;
    },
    /** Makes a namespace; answers what calls `/api/v1/projects` with its credential. */
    async owner(name) {
      const { credential } = await this.operate('namespace', 'create', name);
      return async (method, path, body) => {
        const answer = await fetch(`${url}/api/v1/projects${path}`, {
          method,
          headers: { authorization: `Bearer ${credential}` },
          body: body && JSON.stringify(body),
        });
        const said = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said}`);
        return said && JSON.parse(said);
      };
    },
    /** Runs an operator's command on the server's data directory. */
    async operate(...command) {
      const { stdout } = await run(binary, [...command, '--data', data, '--json']);
      return JSON.parse(stdout);
    },
    async stop() {
      child.kill('SIGTERM');
      const [code] = await exited;
      await rm(directory, { recursive: true, force: true });
      if (code !== 0) throw new Error(`svc ended with ${code}:\n${log}`);
    },
  };
}
