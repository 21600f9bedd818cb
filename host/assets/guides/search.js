// Search in the guides: their texts are fetched once, when somebody begins to search, and are looked through in the page.
const form = document.querySelector('.bar form');
const field = form.querySelector('input');
const list = form.querySelector('ol');
const said = form.querySelector('[role=status]');
const contents = document.querySelector('.toc');
const MOST = 12;
const AROUND = 60;
let texts;

const load = () => {
  texts ??= fetch('search.json').then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  });
  // A failed attempt is made anew by the next one.
  texts.catch(() => { texts = undefined; });
  return texts;
};

const worth = (words, title, heading, text) => {
  let sum = 0;
  for (const word of words) {
    const own = (heading.includes(word) ? 8 : 0) + (text.includes(word) ? 1 : 0);
    if (own === 0 && !title.includes(word)) return 0;
    sum += own;
  }
  return sum;
};

const find = (pages, words) => {
  const found = [];
  for (const page of pages) {
    const title = page.title.toLowerCase();
    for (const section of page.sections) {
      const sum = worth(words, title, section.heading.toLowerCase(), section.text.toLowerCase());
      if (sum > 0) found.push({ page, section, sum });
    }
  }
  return found.sort((one, other) => other.sum - one.sum).slice(0, MOST);
};

const excerpt = (text, words) => {
  const at = words.map((word) => text.toLowerCase().indexOf(word)).find((place) => place >= 0) ?? 0;
  const start = Math.max(0, at - AROUND);
  const end = Math.min(text.length, at + 2 * AROUND);
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
};

const item = ({ page, section }, words) => {
  const link = document.createElement('a');
  link.href = `${page.name || './'}${section.id ? `#${section.id}` : ''}`;
  const place = section.heading === page.title ? '' : `${page.title}: `;
  const about = document.createElement('span');
  about.textContent = excerpt(section.text, words);
  link.append(`${place}${section.heading}`, about);
  const line = document.createElement('li');
  line.append(link);
  return line;
};

const show = async () => {
  const wanted = field.value.trim();
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    list.replaceChildren();
    said.textContent = '';
    return;
  }
  try {
    const { pages } = await load();
    if (field.value.trim() !== wanted) return;
    const found = find(pages, words);
    list.replaceChildren(...found.map((one) => item(one, words)));
    said.textContent = found.length === 0 ? `Nothing has “${wanted}”.` : `${found.length} places`;
  } catch {
    said.textContent = 'The texts of the guides cannot be fetched. Try again.';
  }
};

const clear = () => {
  field.value = '';
  show();
};

form.hidden = false;
field.addEventListener('focus', () => { load().catch(() => {}); }, { once: true });
field.addEventListener('input', show);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  list.querySelector('a')?.click();
});
list.addEventListener('click', (event) => {
  if (event.target.closest('a')) clear();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && form.contains(document.activeElement)) {
    clear();
    field.focus();
  }
});
if (contents && matchMedia('(min-width:84rem)').matches) contents.open = true;
