// The landing page's form: files, folders and text taken in, a preview while one types, the link once it is published, and the shares that
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

// Keeps shares in this browser, where no page of somebody else's is in the same origin; else it is this tab's alone.

/** A value that is kept as JSON in a storage; a browser without one has it until the tab is closed. */
function kept(storage, name, empty) {
  let held = empty;
  const store = () => window[storage];
  if (!keeps) {
    // Shares that were kept while the origin was nobody else's must not be theirs.
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
