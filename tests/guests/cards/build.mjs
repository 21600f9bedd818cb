// Makes the component: `node build.mjs [OUT]`.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { componentize } from 'componentize-qjs';

const here = dirname(fileURLToPath(import.meta.url));
const entry = join(here, 'guest.js');

const { component } = await componentize({
  witPath: resolve(here, '../../../wit/render'),
  world: 'render',
  jsSource: await readFile(entry, 'utf8'),
  jsPath: entry,
  moduleRoot: here,
  // A guest is given nothing: whatever the interpreter would ask of the outside world becomes a trap.
  stubWasi: true,
  // Calls are over when they answer.
  sync: true,
});
await writeFile(process.argv[2] ?? join(here, 'cards.wasm'), component);
