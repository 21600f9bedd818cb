// The landing page's form: files and text taken in, a preview while one types, the link once it is published, and the shares that
// this browser has published. What is typed runs only in frames of an opaque origin; here it is never more than text.
const element = (id) => document.getElementById(id);
const form = element('share');
const { api, keeps, most } = form.dataset;
const field = (name) => form.elements.namedItem(name);
const text = (name) => field(name).value.trim();

const call = (path, method, { body, token, signal } = {}) =>
  fetch(api + path, {
    method,
    headers: { ...(body && { 'Content-Type': 'application/json' }), ...(token && { Authorization: `Bearer ${token}` }) },
    credentials: 'omit',
    body: body && JSON.stringify(body),
    signal,
  });

/** What went wrong, for a person, and how long to wait before another try. */
async function problem(answer) {
  const wait = Number(answer.headers.get('Retry-After')) || 0;
  const said = await answer.json().catch(() => ({}));
  return { wait, said: said.detail ?? `The server answered ${answer.status}.` };
}

const unreachable = 'The server cannot be reached. What you have typed is still here: try again.';
const say = (words) => (element('said').textContent = words);

// What stays in this browser, where no page of somebody else's is in the same origin; else it is this tab's alone.

/** A value that is kept as JSON in a storage; a browser without one has it until the tab is closed. */
function kept(storage, name, empty) {
  let held = empty;
  const store = () => window[storage];
  if (!keeps) {
    // What was kept while the origin was nobody else's must not be theirs.
    try {
      store().removeItem(name);
    } catch {}
  }
  return {
    get() {
      if (!keeps) return held;
      try {
        return JSON.parse(store().getItem(name)) ?? empty;
      } catch {
        return held;
      }
    },
    set(value) {
      held = value;
      if (!keeps) return;
      try {
        if (value === empty) store().removeItem(name);
        else store().setItem(name, JSON.stringify(value));
      } catch {}
    },
  };
}

const drafts = kept('sessionStorage', 'svc-draft', null);
const shares = kept('localStorage', 'svc-shares', []);

// The preview.

const DELAY = 400;
const LARGE = 200_000;
const stage = element('preview');
const EMPTY = stage.textContent;
let timer;
let asking;
let frame;
let coming;
let asked;
let scrolled = 0;
let quietUntil = 0;

/** Shows a page in a new frame, which takes the old one's place once it has something to show. */
function show(html) {
  coming?.remove();
  const next = document.createElement('iframe');
  next.title = 'Preview of your page';
  next.className = 'coming';
  next.setAttribute('sandbox', 'allow-scripts');
  next.src = `${api}/_svc/preview`;
  next.addEventListener('load', () => next.contentWindow.postMessage({ html, top: scrolled }, '*'), { once: true });
  coming = next;
  stage.append(next);
}

addEventListener('message', ({ source, data }) => {
  if (coming && source === coming.contentWindow) {
    for (const old of [...stage.children]) if (old !== coming) old.remove();
    coming.className = '';
    [frame, coming] = [coming, undefined];
  }
  if (frame && source === frame.contentWindow && Number.isFinite(data?.top)) scrolled = data.top;
});

/** Shows words where no page can be shown. */
function instead(words, isWrong) {
  coming = frame = undefined;
  scrolled = 0;
  const note = document.createElement('p');
  note.textContent = words;
  note.className = isWrong ? 'wrong' : '';
  stage.replaceChildren(note);
}

async function preview() {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const content = field('content').value;
  const type = (asked = field('type').value);
  if (!content.trim()) return instead(EMPTY);
  if (content.length > LARGE) return instead(tooLong() || 'This is too long to be shown while you type. It can be published.');
  // HTML is published byte for byte, so there is nothing to ask for.
  if (type === 'html') return show(content);
  try {
    const answer = await call('/_svc/preview', 'POST', { body: { type, content, title: text('title') || text('name') }, signal });
    if (answer.ok) return show((await answer.json()).html);
    const { said, wait } = await problem(answer);
    if (signal.aborted) return;
    instead(said, true);
    if (wait) {
      quietUntil = Date.now() + wait * 1000;
      later();
    }
  } catch {
    if (!signal.aborted) instead(unreachable, true);
  }
}

function later() {
  // Until then nothing is better than a page of another type.
  if (asked !== field('type').value) {
    asking?.abort();
    instead(EMPTY);
  }
  clearTimeout(timer);
  timer = setTimeout(preview, Math.max(DELAY, quietUntil - Date.now()));
}

// What it is: chosen, named by a file, or guessed from the text.

const known = [...field('type')].map(({ value, dataset }) => ({ value, ...dataset }));
const names = Object.fromEntries(known.map(({ value, phrase }) => [value, phrase]));
const types = Object.fromEntries(known.flatMap(({ value, extensions }) => extensions.split(' ').map((one) => [one, value])));
const languages = new Map(form.dataset.languages.split(' ').map((pair) => pair.split(':')));
const DIAGRAM =
  /^(%%.*\n|---\n[^]*?\n---\n|\s)*(flowchart|graph|sequenceDiagram|classDiagram|stateDiagram|erDiagram|gantt|pie|mindmap|gitGraph|journey|timeline|quadrantChart|xychart|sankey|requirementDiagram|C4\w+|block|packet|kanban|architecture|radar)\b/;
let chosen = false;

function guess(content) {
  const start = content.trimStart();
  if (/^<(!doctype|html|head|body|div|p|h1|svg|main|section|article|table|style|script)\b/i.test(start)) return 'html';
  if (/^[[{]/.test(start)) {
    try {
      JSON.parse(content);
      return 'json';
    } catch {}
  }
  if (DIAGRAM.test(content)) return 'mermaid';
  const lines = content.trim().split(/\r?\n/, 5);
  const columns = (mark) => new Set(lines.map((line) => line.split(mark).length));
  const isTable = (mark) => columns(mark).size === 1 && !columns(mark).has(1);
  return lines.length > 1 && [',', ';', '\t'].some(isTable) && !/[.!?]$/.test(lines[0]) ? 'csv' : 'markdown';
}

function guessed() {
  const content = field('content').value;
  if (chosen || !content.trim() || content.length > LARGE) return;
  const type = guess(content);
  if (type === field('type').value) return;
  field('type').value = type;
  element('guess').textContent = `It looks like ${names[type]}. If it is something else, choose.`;
}

/** A block of Markdown that nothing in the text can close. */
function fenced(content, language) {
  const longest = Math.max(2, ...Array.from(content.matchAll(/\x60+/g), ([run]) => run.length));
  const fence = '\x60'.repeat(longest + 1);
  return `${fence}${language}\n${content}${content.endsWith('\n') ? '' : '\n'}${fence}\n`;
}

let titled = '';

async function take(file) {
  fail('');
  if (file.size > most) return fail(`A page may have ${size(most)}; ${file.name} has ${size(file.size)}.`);
  let content;
  try {
    content = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {}
  if (content === undefined || content.includes('\0')) {
    return fail(`${file.name} is not text. Pages are made of text: ${Object.values(names).join(', ')}, or code.`);
  }
  const extension = file.name.includes('.') ? file.name.split('.').pop().toLowerCase() : '';
  const type = types[extension] ?? 'markdown';
  const language = types[extension] ? '' : (languages.get(extension) ?? (/^[a-z0-9+#]{1,16}$/.test(extension) ? extension : 'text'));
  field('content').value = language ? fenced(content, language) : content;
  field('type').value = type;
  if (!text('title') || text('title') === titled) field('title').value = titled = file.name.slice(0, 200);
  chosen = true;
  element('guess').textContent = language ? `${file.name} is shown as code.` : `${file.name} is ${names[type]}.`;
  changed();
}

element('file').addEventListener('change', ({ target }) => {
  const [file] = target.files;
  target.value = '';
  if (file) take(file);
});

const holds = ({ types }) => [...types].includes('Files');
const zone = element('now').closest('section');
for (const name of ['dragenter', 'dragover', 'dragleave', 'drop']) {
  document.addEventListener(name, (event) => {
    if (!holds(event.dataTransfer)) return;
    // Anywhere on the page: a file that is dropped beside the form must not take the page's place.
    event.preventDefault();
    zone.classList.toggle('over', name !== 'drop' && (name !== 'dragleave' || event.relatedTarget !== null));
    if (name === 'drop' && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
}

form.addEventListener('paste', (event) => {
  const [file] = event.clipboardData.files;
  if (!file || event.clipboardData.types.includes('text/plain')) return;
  event.preventDefault();
  take(file);
});

// What is typed.

/** A number of bytes as people say it. */
function size(bytes) {
  const kilo = bytes / 1024;
  return kilo < 1000 ? `${Math.ceil(kilo)} KB` : `${(Math.ceil((kilo / 1024) * 10) / 10).toString()} MB`;
}

/** Why it cannot be published for its length, if it cannot. */
function tooLong() {
  if (field('content').value.length * 6 < most) return '';
  const bytes = new TextEncoder().encode(JSON.stringify(wanted())).length;
  return bytes > most ? `A page may have ${size(most)}; this has ${size(bytes)}.` : '';
}

function wanted() {
  const share = { type: field('type').value, content: field('content').value };
  for (const name of ['title', 'name']) if (text(name)) share[name] = text(name);
  if (field('expires_in').value) share.expires_in = Number(field('expires_in').value);
  if (field('password').value) share.password = field('password').value;
  if (field('one_time').checked) share.one_time = true;
  return share;
}

function changed() {
  fail(tooLong());
  later();
  const { password, ...draft } = wanted();
  drafts.set(draft.content.trim() ? draft : null);
}

form.addEventListener('input', ({ target }) => {
  if (target.name === 'type') {
    chosen = true;
    element('guess').textContent = '';
  }
  if (target.name === 'content') {
    if (!target.value.trim()) chosen = false;
    guessed();
  }
  if (target.name) changed();
});

// Publishing.

const send = element('send');
const wrong = element('wrong');
const result = element('result');
let sending = false;
let published;

function fail(said) {
  if (wrong.textContent !== said) wrong.textContent = said;
}

/** A time as people write it where the reader lives. */
function time(at) {
  const end = document.createElement('time');
  end.dateTime = at;
  end.textContent = new Date(at).toLocaleString(undefined, { dateStyle: 'long', timeStyle: 'short' });
  return end;
}

function succeed(share, asked) {
  published = share;
  element('link').value = share.url;
  element('open').href = share.url;
  element('open').hidden = Boolean(asked.one_time);
  element('once').hidden = !asked.one_time;
  element('expires').replaceChildren(time(share.expires_at));
  element('secret').hidden = !asked.password;
  element('secret-text').value = asked.password ?? '';
  const renamed = asked.name && asked.name !== share.slug;
  element('renamed').textContent = renamed ? `“${asked.name}” is not free, so it is “${share.slug}”.` : '';
  const code = Object.assign(document.createElement('img'), { width: 148, height: 148, alt: 'The link as a QR code' });
  code.src = `${api}/_svc/qr/${share.slug}`;
  element('qr').replaceChildren(code);
  result.hidden = false;
  element('published').focus();
  const { id, url, title, expires_at, delete_token } = share;
  shares.set([{ id, url, title, expires_at, delete_token, once: Boolean(asked.one_time) }, ...live()]);
  list();
  drafts.set(null);
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (sending) return;
  result.hidden = true;
  const share = wanted();
  if (!share.content.trim()) {
    fail('There is nothing to publish yet: write something, or open a file.');
    field('content').focus();
    return;
  }
  if (tooLong()) return fail(tooLong());
  sending = true;
  send.setAttribute('aria-disabled', 'true');
  fail('');
  try {
    const answer = await call('/api/v1/deploy', 'POST', { body: share });
    if (answer.ok) succeed(await answer.json(), share);
    else fail((await problem(answer)).said);
  } catch {
    fail(unreachable);
  } finally {
    sending = false;
    send.removeAttribute('aria-disabled');
  }
});

// Deleting, and the shares of this browser.

const live = () => shares.get().filter(({ expires_at }) => Date.parse(expires_at) > Date.now());

async function remove({ id, delete_token: token }, complain) {
  try {
    const answer = await call(`/api/v1/deploy/${id}`, 'DELETE', { token });
    // Of what nobody knows any more there is nothing to delete.
    if (!answer.ok && answer.status !== 404) return complain((await problem(answer)).said);
  } catch {
    return complain(unreachable);
  }
  shares.set(live().filter((other) => other.id !== id));
  if (published?.id === id) result.hidden = true;
  list();
  say('Deleted');
  return true;
}

/** Asks once more in the button itself. */
function deletes(button, share) {
  let sure = false;
  button.addEventListener('click', async () => {
    if (!sure) {
      sure = true;
      button.textContent = 'Really delete?';
      setTimeout(() => {
        sure = false;
        button.textContent = 'Delete';
      }, 4000);
      return;
    }
    const heading = element('mine');
    if (await remove(share(), (words) => (button.textContent = words))) (heading.closest('section').hidden ? field('content') : heading).focus();
  });
}

function row(share) {
  const item = document.createElement('li');
  const link = document.createElement(share.once ? 'span' : 'a');
  link.textContent = share.title === 'Untitled' ? new URL(share.url).pathname.slice(1) : share.title;
  if (!share.once) Object.assign(link, { href: share.url, target: '_blank', rel: 'noopener' });
  const end = document.createElement('span');
  end.className = 'soft';
  end.append(share.once ? 'Opens once. ' : '', 'Expires ', time(share.expires_at));
  const button = document.createElement('button');
  Object.assign(button, { type: 'button', className: 'plain', textContent: 'Delete' });
  link.id = `share-${share.id}`;
  button.setAttribute('aria-describedby', link.id);
  deletes(button, () => share);
  item.append(link, end, button);
  return item;
}

function list() {
  const all = live();
  element('mine').closest('section').hidden = !all.length;
  element('shares').replaceChildren(...all.map(row));
}

deletes(element('delete'), () => published);
addEventListener('storage', list);

// Passing on. Without a secure origin there is no clipboard to write to, but there is a selection to copy.

async function copy(words, button, area) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    if (area.select) area.select();
    else getSelection().selectAllChildren(area);
    document.execCommand('copy');
  }
  const label = button.textContent;
  button.textContent = 'Copied';
  say('Copied');
  setTimeout(() => {
    button.textContent = label;
    say('');
  }, 2000);
}

element('copy').addEventListener('click', ({ target }) => copy(element('link').value, target, element('link')));
element('copy-secret').addEventListener('click', ({ target }) => copy(element('secret-text').value, target, element('secret-text')));
element('pass').hidden = !navigator.share;
element('pass').addEventListener('click', () => navigator.share({ url: published.url }).catch(() => {}));
for (const button of document.querySelectorAll('.snippet button')) {
  const area = button.closest('.snippet').querySelector('pre');
  button.hidden = false;
  button.addEventListener('click', () => copy(area.textContent.trimEnd(), button, area));
}

// What was typed before a reload, or kept by a browser that comes back to the page.
const draft = drafts.get();
if (draft && !field('content').value) {
  for (const [name, value] of Object.entries(draft)) {
    if (name === 'one_time') field(name).checked = value;
    else if (field(name)) field(name).value = value;
  }
  chosen = true;
}
if (field('content').value) later();
list();
