// Folders of `svc init`, served by `svc dev`: processes as a person at a shell starts them.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { binary, cache } from './svc.mjs';

const run = promisify(execFile);

/** Makes a folder from a template. */
export async function initFolder(template) {
  const parent = await mkdtemp(join(tmpdir(), 'svc-folder-'));
  const path = join(parent, template);
  await run(binary, ['init', '--template', template, path]);
  return {
    path,
    read: (name) => readFile(join(path, name), 'utf8'),
    write: (name, text) => writeFile(join(path, name), text),
    remove: () => rm(parent, { recursive: true, force: true }),
  };
}

/** Serves a folder; answers its pages' addresses by their slugs, once they are there. */
export async function startDev(folder) {
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const child = spawn(binary, ['dev', folder.path, '--json', '--cache', cache], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (chunk) => (log += chunk));
  const exited = once(child, 'exit');
  const said = new Promise((found) => createInterface(child.stdout).once('line', found));
  const line = await Promise.race([
    said,
    exited.then(() => Promise.reject(new Error(`svc dev ended before it was ready:\n${log}`))),
  ]);
  const { server, credential, pages } = JSON.parse(line);
  return {
    server,
    credential,
    pages: Object.fromEntries(pages.map(({ slug, url }) => [slug, url])),
    async stop() {
      child.kill('SIGTERM');
      const [code] = await exited;
      if (code !== 0) throw new Error(`svc dev ended with ${code}:\n${log}`);
    },
  };
}
