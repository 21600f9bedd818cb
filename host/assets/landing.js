// The landing page's form: a preview while one types, and the link once it is published.
// What is typed runs only in frames of an opaque origin; here it is never more than text.
const element = (id) => document.getElementById(id);
const form = element('share');
const api = form.dataset.api;
const field = (name) => form.elements.namedItem(name);
const text = (name) => field(name).value.trim();

const call = (path, body, signal) =>
  fetch(api + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    credentials: 'omit',
    body: JSON.stringify(body),
    signal,
  });

/** What went wrong, for a person, and how long to wait before another try. */
async function problem(answer) {
  const wait = Number(answer.headers.get('Retry-After')) || 0;
  const said = await answer.json().catch(() => ({}));
  const detail = said.detail ?? `The server answered ${answer.status}.`;
  return { wait, said: wait ? `${detail} (Try again in ${wait} seconds.)` : detail };
}

const unreachable = 'The server cannot be reached. What you have typed is still here: try again.';

// The preview.

const DELAY = 400;
const LARGE = 200_000;
const stage = element('preview');
const hint = element('hint');
let timer;
let asking;
let frame;
let coming;
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

function nothing() {
  coming = frame = undefined;
  scrolled = 0;
  const empty = document.createElement('p');
  empty.textContent = 'What you type is shown here as it will look.';
  stage.replaceChildren(empty);
}

async function preview() {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const content = field('content').value;
  const type = field('type').value;
  hint.textContent = '';
  if (!content) return nothing();
  if (content.length > LARGE) {
    hint.textContent = 'This is too long to be shown while you type. It can be published all the same.';
    return;
  }
  // HTML is published byte for byte, so there is nothing to ask for.
  if (type === 'html') return show(content);
  try {
    const answer = await call('/_svc/preview', { type, content, title: text('title') || text('name') }, signal);
    if (answer.ok) return show((await answer.json()).html);
    const { said, wait } = await problem(answer);
    if (signal.aborted) return;
    hint.textContent = said;
    if (wait) {
      quietUntil = Date.now() + wait * 1000;
      later();
    }
  } catch (error) {
    if (!signal.aborted) hint.textContent = unreachable;
  }
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(preview, Math.max(DELAY, quietUntil - Date.now()));
}

form.addEventListener('input', ({ target }) => {
  if (['type', 'content', 'title', 'name'].includes(target.name)) later();
});

const types = { md: 'markdown', markdown: 'markdown', txt: 'markdown', html: 'html', htm: 'html', mmd: 'mermaid', mermaid: 'mermaid', json: 'json', csv: 'csv' };

element('file').addEventListener('change', async ({ target }) => {
  const [file] = target.files;
  if (!file) return;
  field('content').value = await file.text();
  const type = types[file.name.split('.').pop().toLowerCase()];
  if (type) field('type').value = type;
  target.value = '';
  later();
});

// Publishing.

const send = element('send');
const wrong = element('wrong');
const result = element('result');
let sending = false;

function fail(said) {
  wrong.textContent = said;
}

function succeed({ url, slug, expires_at }, wanted) {
  const link = element('link');
  link.value = url;
  element('open').href = url;
  const end = element('expires');
  end.dateTime = expires_at;
  end.textContent = new Date(expires_at).toLocaleString(undefined, { dateStyle: 'long', timeStyle: 'short' });
  element('renamed').textContent = wanted && wanted !== slug ? `“${wanted}” was taken, so it is “${slug}”.` : '';
  result.hidden = false;
  element('published').focus();
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (sending) return;
  const share = { type: field('type').value, content: field('content').value };
  for (const name of ['title', 'name']) if (text(name)) share[name] = text(name);
  if (field('password').value) share.password = field('password').value;
  if (field('one_time').checked) share.one_time = true;
  sending = true;
  send.setAttribute('aria-disabled', 'true');
  fail('');
  result.hidden = true;
  try {
    const answer = await call('/api/v1/deploy', share);
    if (answer.ok) succeed(await answer.json(), share.name);
    else fail((await problem(answer)).said);
  } catch {
    fail(unreachable);
  } finally {
    sending = false;
    send.removeAttribute('aria-disabled');
  }
});

// Copying. Without a secure origin there is no clipboard to write to, but there is a selection to copy.

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
  element('said').textContent = 'Copied';
  setTimeout(() => {
    button.textContent = label;
    element('said').textContent = '';
  }, 2000);
}

element('copy').addEventListener('click', ({ target }) => copy(element('link').value, target, element('link')));
for (const button of document.querySelectorAll('.snippet button')) {
  const area = button.closest('.snippet').querySelector('pre');
  button.hidden = false;
  button.addEventListener('click', () => copy(area.textContent.trimEnd(), button, area));
}

// A browser that comes back to the page may have kept what was typed.
if (field('content').value) later();
