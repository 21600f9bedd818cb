// A table of CSV that is searched, filtered and sorted. Loaded where a page has one; without it the table is whole.
const STYLES = `.tools{display:flex;flex-wrap:wrap;align-items:end;gap:.5rem 1rem;margin-bottom:1rem;font-size:.875rem}
.tools label{display:grid;gap:.2rem;flex:1 1 9rem;max-width:18rem;color:var(--muted)}
.tools input,.tools select{width:100%;min-height:2.25rem;padding:.3rem .6rem;font:inherit;color:var(--text);background:var(--bg);
border:1px solid var(--muted);border-radius:var(--radius)}
.tools output{flex:1 0 100%;min-height:1.5em;color:var(--muted)}
thead th:has(>button){padding:0}
th>button{display:flex;gap:.4em;width:100%;height:100%;padding:.5rem .9rem;font:inherit;color:inherit;text-align:inherit;white-space:inherit;
background:none;border:0;cursor:pointer}
th>button:focus-visible{outline-offset:-2px}
th>button::after{content:"↕";margin-inline-start:auto;color:var(--muted)}
[aria-sort=ascending]>button::after{content:"↑";color:var(--accent)}
[aria-sort=descending]>button::after{content:"↓";color:var(--accent)}`;
const DELAY = 120;
const words = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });
const fold = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/** Reads the numbers of a column, NaN for an empty cell; nothing unless every cell with a text is a number. */
export const numbers = (cells) => {
  const bare = cells.map((cell) => cell.replace(/[\s\u00a0\u202f'’_]|\p{Sc}|\b[A-Z]{3}\b|%/gu, '').replace('\u2212', '-'));
  const filled = bare.filter(Boolean);
  // A comma is decimal where one stands behind a point, or where it does not part thousands.
  const both = filled.find((cell) => cell.includes(',') && cell.includes('.'));
  const isDecimal = both ? both.lastIndexOf(',') > both.lastIndexOf('.') : filled.some((cell) => cell.includes(',') && !/^[-+(]?\d{1,3}(,\d{3})+\)?$/.test(cell));
  const read = (cell) => {
    if (!cell) return NaN;
    const [, open, digits] = /^(\()?(.*?)\)?$/.exec(isDecimal ? cell.replace(/\./g, '').replace(',', '.') : cell.replace(/,/g, ''));
    const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(digits) ? Number(digits) : NaN;
    return open ? -number : number;
  };
  const found = bare.map(read);
  return filled.length && found.filter((number) => !Number.isNaN(number)).length === filled.length ? found : undefined;
};

/** What a filter asks of a cell: a part of its text, or with `=`, `>`, `<`, `>=` or `<=` before a value a comparison. */
export const test = (asked, cells, values) => {
  const [, sign, rest] = /^(>=|<=|=|>|<)?\s*(.*)$/s.exec(asked.trim());
  if (!rest) return;
  const wanted = fold(rest);
  if (!sign) return (at) => fold(cells[at]).includes(wanted);
  const value = values && numbers([rest])?.[0];
  const order = value === undefined ? (at) => (cells[at] ? words.compare(cells[at], rest) : NaN) : (at) => values[at] - value;
  const holds = { '>=': (n) => n >= 0, '<=': (n) => n <= 0, '=': (n) => n === 0, '>': (n) => n > 0, '<': (n) => n < 0 }[sign];
  return (at) => holds(order(at));
};

export const furnish = (region) => {
  const tools = region.previousElementSibling;
  const table = region.querySelector('table');
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  if (!tools?.matches('.tools') || rows.length < 2) return;
  const make = (name, properties, ...inside) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...inside);
    return element;
  };
  const names = heads.map((head, at) => head.textContent.trim() || `Column ${at + 1}`);
  const columns = [];
  const column = (at) => {
    if (!columns[at]) {
      const cells = rows.map((row) => row.cells[at].textContent.trim());
      columns[at] = { cells, values: numbers(cells) };
    }
    return columns[at];
  };
  let texts;
  const search = make('input', { type: 'search', autocomplete: 'off' });
  const which = make('select', {}, ...names.map((name, at) => new Option(name, at)));
  const asked = make('input', { type: 'search', autocomplete: 'off', placeholder: 'text, or > 10' });
  const count = make('output', {});
  const show = () => {
    const wanted = fold(search.value.trim());
    if (wanted) texts ??= rows.map((row) => fold([...row.cells].map((cell) => cell.textContent).join('\n')));
    const { cells, values } = asked.value.trim() ? column(which.value) : {};
    const passes = cells && test(asked.value, cells, values);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = Boolean((wanted && !texts[at].includes(wanted)) || (passes && !passes(at)));
      if (!row.hidden) shown += 1;
    });
    count.textContent = wanted || passes ? `${shown} of ${rows.length} rows` : '';
  };
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(show, DELAY);
  };
  search.addEventListener('input', later);
  asked.addEventListener('input', later);
  which.addEventListener('change', show);

  const places = rows.map((_, at) => at);
  const sort = (at, order) => {
    heads.forEach((head, other) => head.setAttribute('aria-sort', other === at ? order : 'none'));
    const { cells, values } = column(at);
    const sign = order === 'descending' ? -1 : 1;
    const isEmpty = (row) => !cells[row];
    // What is empty comes last either way; what is equal keeps its order.
    const compare = (a, b) =>
      isEmpty(a) - isEmpty(b) || sign * (values ? values[a] - values[b] : words.compare(cells[a], cells[b])) || a - b;
    const sorted = order === 'none' ? places : [...places].sort(compare);
    const all = document.createDocumentFragment();
    for (const row of sorted) all.append(rows[row]);
    body.append(all);
  };
  const next = { none: 'ascending', ascending: 'descending', descending: 'none' };
  heads.forEach((head, at) => {
    const button = make('button', { type: 'button', title: 'Sort' }, ...head.childNodes);
    if (!button.textContent.trim()) button.setAttribute('aria-label', names[at]);
    button.addEventListener('click', () => sort(at, next[head.getAttribute('aria-sort')]));
    head.setAttribute('aria-sort', 'none');
    head.append(button);
  });
  document.head.append(make('style', { textContent: STYLES }));
  tools.lang = 'en';
  tools.setAttribute('role', 'search');
  count.setAttribute('aria-live', 'polite');
  tools.append(make('label', {}, 'Search', search), make('label', {}, 'Filter by', which), make('label', {}, 'Condition', asked), count);
};
