// A folder, several files, or one that is shared as it is: held in place of what is typed, until it is published or taken out.

const media = form.dataset.media.split(' ');
const mostFiles = Number(form.dataset.files);
const LEFT_OUT = /^(\.(?!well-known$)|node_modules$)/;
let held;

const extensionOf = ({ name }) => (name.includes('.') ? name.split('.').pop().toLowerCase() : '');

/** Holds what is published in place of the text; without it the text counts again. */
function hold(next, said = '') {
  const content = field('content');
  held = next;
  element('kinds').hidden = content.hidden = content.disabled = Boolean(held);
  element('held').hidden = !held;
  element('held-said').textContent = said;
  element('guess').textContent = '';
  changed();
}

/** Files below an entry of a drop, with their paths; those that are left out are counted. */
async function* below(entry, path, count) {
  if (entry.isFile) return yield { path, file: await new Promise((found, failed) => entry.file(found, failed)) };
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) return;
    for (const one of some) {
      if (LEFT_OUT.test(one.name)) count.out += 1;
      else yield* below(one, path ? `${path}/${one.name}` : one.name, count);
    }
  }
}

/** Files of a drop: of one folder by their paths in it, else by their names. */
async function* inEntries(entries, count) {
  for (const entry of entries) yield* below(entry, entries.length > 1 ? entry.name : '', count);
}

/** Files that were chosen, by their paths in the folder. */
function* inFiles(files, count) {
  for (const file of files) {
    const path = (file.webkitRelativePath || `/${file.name}`).split('/').slice(1);
    if (path.some((part) => LEFT_OUT.test(part))) count.out += 1;
    else yield { path: path.join('/'), file };
  }
}

/** A file as it is sent: as a text if it is one, byte for byte. */
async function source(file) {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()) };
  } catch {}
  const reader = new FileReader();
  const read = new Promise((found, failed) => Object.assign(reader, { onload: found, onerror: failed }));
  reader.readAsDataURL(file);
  await read;
  return { base64: reader.result.slice(reader.result.indexOf(',') + 1) };
}

async function takeFiles(name, listed, count) {
  fail('');
  const share = { type: 'site', files: {} };
  let [number, bytes] = [0, 0];
  try {
    for await (const { path, file } of listed) {
      number += 1;
      bytes += file.size;
      if (number > mostFiles) return fail(`A share has ${mostFiles} files at most, and ${name} has more.`);
      if (bytes > most) return fail(`A share has ${size(most)} at most, and ${name} has more.`);
      share.files[path.normalize('NFC')] = await source(file);
    }
  } catch {
    return fail(`${name} cannot be read.`);
  }
  if (!number) return fail(`${name} has no files.`);
  const sent = new TextEncoder().encode(JSON.stringify(share)).length;
  if (sent > most) return fail(`A share has ${size(most)} at most as it is sent, and ${name} has ${size(sent)}.`);
  const notes = [`${name}: ${number} ${number === 1 ? 'file' : 'files'}, ${size(bytes)}.`];
  if (count.out) notes.push(`${count.out} left out: what begins with a dot, and node_modules.`);
  if (!share.files['index.html']) notes.push('It has no index.html, so its link shows nothing by itself.');
  hold({ share }, notes.join(' '));
}

/** Takes what was dropped. Its entries are there for this moment alone. */
function dropped({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const count = { out: 0 };
  if (entries.length > 1) takeFiles('What you dropped', inEntries(entries, count), count);
  else if (entries[0]?.isDirectory) takeFiles(entries[0].name, inEntries(entries, count), count);
  else if (files.length > 1) takeFiles('What you dropped', inFiles(files, count), count);
  else if (files.length) take(files[0]);
}

element('folder').addEventListener('change', ({ target }) => {
  const files = [...target.files];
  target.value = '';
  const count = { out: 0 };
  if (files.length) takeFiles(files[0].webkitRelativePath.split('/')[0] || 'The folder', inFiles(files, count), count);
});

element('let-go').addEventListener('click', () => {
  hold();
  field('content').focus();
});

/** Publishes a file as it is. */
const upload = (file, options) =>
  fetch(`${api}/api/v1/deploy/${encodeURIComponent(file.name)}?${new URLSearchParams(options)}`, {
    method: 'PUT',
    headers: { Accept: 'application/json' },
    credentials: 'omit',
    body: file,
  });
