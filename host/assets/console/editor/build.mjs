// Makes `vendor/` anew: the libraries as they are published, byte for byte, and the editor as one file.
// `node build.mjs --check` writes nothing and fails where a file differs.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, '../vendor');
const isCheck = process.argv.includes('--check');
const editorLimit = 135 * 1024;

const published = [
  ['preact', 'preact', 'dist/preact.mjs', 'preact.mjs'],
  ['preact/hooks', 'preact', 'hooks/dist/hooks.mjs', 'hooks.mjs'],
  ['@preact/signals-core', '@preact/signals-core', 'dist/signals-core.mjs', 'signals-core.mjs'],
  ['@preact/signals', '@preact/signals', 'dist/signals.mjs', 'signals.mjs'],
  ['htm', 'htm', 'dist/htm.mjs', 'htm.mjs'],
];

const modules = join(here, 'node_modules');
const manifest = async (name) => JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8'));
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const written = new Map();
const list = { note: 'Made by `just console`. The names are those of the import map.', modules: {} };

for (const [specifier, name, path, file] of published) {
  const bytes = await readFile(join(modules, name, path));
  const { version, license } = await manifest(name);
  written.set(file, bytes);
  list.modules[specifier] = { file, package: name, version, license, sha256: sha256(bytes) };
}

const made = await build({
  entryPoints: [join(here, 'editor.js')],
  bundle: true,
  format: 'esm',
  minify: true,
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
  write: false,
  absWorkingDir: here,
});
const editor = Buffer.from(made.outputFiles[0].contents);
const packages = [...new Set(Object.keys(made.metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]))];
const parts = await Promise.all(packages.filter(Boolean).sort().map(manifest));
written.set('editor.js', editor);
list.modules.editor = {
  file: 'editor.js',
  made_of: Object.fromEntries(parts.map(({ name, version, license }) => [name, `${version} (${license})`])),
  sha256: sha256(editor),
};
written.set('vendor.json', Buffer.from(`${JSON.stringify(list, null, 2)}\n`));

const licences = await Promise.all(
  ['preact', '@preact/signals', 'htm', '@codemirror/state'].map(async (name) => {
    const text = await readFile(join(modules, name, 'LICENSE'), 'utf8').catch(() => undefined);
    return text && `## ${name}\n\n${text.trim()}\n`;
  }),
);
written.set('LICENSES.md', Buffer.from(`# Licences of the files in this folder\n\n\`vendor.json\` says which file is of which package. CodeMirror and Lezer share one text.\n\n${licences.filter(Boolean).join('\n')}`));

const size = brotliCompressSync(editor).length;
console.log(`editor.js: ${editor.length} bytes, ${size} in brotli`);
if (size > editorLimit) throw new Error(`The editor has more than ${editorLimit} bytes in brotli.`);

for (const [file, bytes] of written) {
  const path = join(vendor, file);
  const old = await readFile(path).catch(() => undefined);
  if (old?.equals(bytes)) continue;
  if (isCheck) throw new Error(`vendor/${file} differs from what is made: run \`just console\`.`);
  await writeFile(path, bytes);
  console.log(`wrote vendor/${file}`);
}
