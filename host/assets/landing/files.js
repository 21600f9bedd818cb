// Type of the content: chosen, named by a file, or guessed from the text.

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
  if (media.includes(extensionOf(file))) return hold({ share: {}, file }, `${file.name}, ${size(file.size)}, is shared as it is.`);
  let content;
  try {
    content = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {}
  if (content === undefined || content.includes('\0')) {
    return fail(`${file.name} is not text. Pages are made of text: ${Object.values(names).join(', ')}, or code.`);
  }
  if (held) hold();
  const extension = extensionOf(file);
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
    if (name === 'drop') dropped(event.dataTransfer);
  });
}

form.addEventListener('paste', (event) => {
  const [file] = event.clipboardData.files;
  if (!file || event.clipboardData.types.includes('text/plain')) return;
  event.preventDefault();
  take(file);
});
