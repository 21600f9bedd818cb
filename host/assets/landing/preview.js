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
  if (held) return instead('Files are shown at their link, once they are published.');
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
