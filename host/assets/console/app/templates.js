// What a new project may begin with.
import { call } from 'app/api.js';

const page = (name) => `# ${name}\n\nThis page is written in Markdown. Change it in **Pages**: save a draft, look at its preview, then promote it.\n`;

const ddl = `CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  text TEXT NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
  at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO entries (name, text) VALUES ('The host', 'Welcome! Write something below.');`;

const actions = [
  { name: 'latest', sql: 'SELECT id, name, text, at FROM entries ORDER BY id DESC LIMIT 50', note: 'Lists the newest entries.' },
  { name: 'sign', sql: 'INSERT INTO entries (name, text) VALUES (:name, :text) RETURNING id', note: 'Writes an entry.' },
];

const book = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Guest book</title>
<style>
  :root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif; }
  body { max-width: 38rem; margin: 2rem auto; padding: 0 1rem; }
  form { display: grid; gap: .8rem; }
  label { display: grid; gap: .2rem; }
  input, textarea, button { font: inherit; padding: .5rem; }
  ul { padding: 0; list-style: none; }
  li { padding: .8rem 0; border-top: 1px solid; overflow-wrap: anywhere; white-space: pre-wrap; }
</style>
<h1>Guest book</h1>
<form>
  <label>Your name <input name="name" maxlength="80" required autocomplete="name"></label>
  <label>Your words <textarea name="text" maxlength="2000" required rows="3"></textarea></label>
  <button>Sign</button>
  <output></output>
</form>
<ul></ul>
<script>
  const form = document.forms[0];
  const list = document.querySelector('ul');
  const said = document.querySelector('output');
  const line = ({ name, text }) => {
    const item = document.createElement('li');
    const who = Object.assign(document.createElement('strong'), { textContent: name });
    item.append(who, '\\n' + text);
    return item;
  };
  // Entries of others appear by themselves.
  svc.db.live('latest', {}, ({ rows }) => list.replaceChildren(...rows.map(line)));
  form.onsubmit = async (event) => {
    event.preventDefault();
    said.textContent = '';
    try {
      await svc.db.op('sign', { name: form.elements.name.value, text: form.elements.text.value });
      form.elements.text.value = '';
    } catch (error) {
      said.textContent = error.message;
    }
  };
</script>
</html>
`;

/** Puts the beginning into a project. Each step has a key, so that an answer that was lost is repeated safely. */
export async function begin(start, project, step) {
  const at = { project: project.id };
  if (start === 'book') {
    await step('backend', (key) => call('create_backend', { ...at, key, body: { ddl } }));
    await step('actions', () => call('define_actions', { ...at, body: { actions } }));
  }
  const body = start === 'book' ? { type: 'html', content: book, requested_slug: 'book' } : { type: 'markdown', content: page(project.name), requested_slug: 'home' };
  await step('page', (key) => call('create_frontend', { ...at, key, body }));
}
