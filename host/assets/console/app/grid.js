// Many rows of values. The cells are elements without components or listeners of their own, so that thousands of them are there at once.
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { write } from 'app/exact.js';
import { html, isPlain, size, unseenParts } from 'app/ui.js';
import { shownCharacters, typeOf } from 'app/values.js';

// From so many cells on rows are drawn when they are scrolled to, in columns whose widths are known before.
const vastCells = 3000;
const [narrowest, widest] = [3, 44];
const blobBytes = 24;

function element(name, kind, text) {
  const made = document.createElement(name);
  made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A copy of a cell takes one call, where making it takes three.
const patterns = Object.fromEntries(
  Object.entries({ null: 'null', integer: 'number', real: 'number', text: 'text', blob: 'blob' }).map(([type, kind]) => {
    const cell = element('td', kind);
    cell.dataset.type = type;
    return [type, cell];
  }),
);

/** Makes the cell of a text. One of more than some hundred characters is shown in part, and says so. */
function textCell(value) {
  const cell = patterns.text.cloneNode(false);
  if (value === '') {
    cell.className = 'text none';
    return cell;
  }
  const isCut = value.length > shownCharacters;
  const splits = isCut && /[\ud800-\udbff]/.test(value[shownCharacters - 1]);
  const shown = isCut ? value.slice(0, splits ? shownCharacters - 1 : shownCharacters) : value;
  if (/[^ -~]/.test(shown)) cell.dir = 'auto';
  if (isPlain(shown)) cell.textContent = shown;
  else {
    const isolated = document.createElement('bdi');
    isolated.append(...unseenParts(shown).map(([text, isUnseen]) => (isUnseen ? element('span', 'unseen', text) : text)));
    cell.append(isolated);
  }
  if (isCut) {
    cell.dataset.cut = '';
    const more = element('span', 'more', '…');
    more.title = 'Longer than shown';
    cell.append(more);
  }
  return cell;
}

function blobCell({ base64 }) {
  const cell = patterns.blob.cloneNode(false);
  const length = (base64.length / 4) * 3 - (/=*$/.exec(base64)[0].length);
  const isCut = length > blobBytes;
  const first = atob(base64.slice(0, (blobBytes / 3) * 4));
  const hex = [...first].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('').toUpperCase();
  cell.textContent = `X'${hex}${isCut ? '…' : ''}'`;
  cell.title = isCut ? `Longer than shown: ${size(length)}` : size(length);
  if (isCut) cell.dataset.cut = '';
  return cell;
}

/** Makes the cell of a value. */
export function cellOf(value) {
  const type = typeOf(value);
  if (type === 'text') return textCell(value);
  if (type === 'blob') return blobCell(value);
  const cell = patterns[type].cloneNode(false);
  cell.textContent = type === 'null' ? 'NULL' : String(value);
  return cell;
}

function rowOf(values, label) {
  const row = document.createElement('tr');
  if (label) {
    const cell = element('td', 'row');
    const button = element('button', 'small', label);
    button.type = 'button';
    cell.append(button);
    row.append(cell);
  }
  row.append(...values.map(cellOf));
  return row;
}

const drawn = new WeakMap();

/** Draws rows into the body of a table. A row whose key was there keeps its element, so that nobody presses what another row has just become. */
function fill(body, { rows, keys, label }) {
  if (!keys || new Set(keys).size < keys.length) return body.replaceChildren(...rows.map((values) => rowOf(values, label)));
  const had = drawn.get(body) ?? new Map();
  const now = new Map();
  rows.forEach((values, at) => {
    const text = write(values);
    const old = had.get(keys[at]);
    const row = old?.row ?? rowOf(values, label);
    if (old && old.text !== text) row.replaceChildren(...(label ? [row.firstChild] : []), ...values.map(cellOf));
    now.set(keys[at], { row, text });
  });
  for (const [key, { row }] of had) if (!now.has(key)) row.remove();
  let at = 0;
  for (const { row } of now.values()) {
    if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null);
    at++;
  }
  drawn.set(body, now);
}

/** Answers how many characters a value takes at most; one that has to be spelled out takes more for each. */
const lengthOf = (value) => {
  if (typeof value !== 'string') return typeOf(value) === 'blob' ? value.base64.length * 1.5 + 3 : String(value).length;
  return value.length >= widest || isPlain(value) ? value.length : value.length * 8;
};

/** Answers the widths of columns in characters: the fonts of such tables have one width for all. */
function widthsOf({ rows, names }) {
  const widths = names.map((name) => name.length + 3);
  for (const values of rows) for (let at = 0; at < values.length; at++) widths[at] = Math.max(widths[at], lengthOf(values[at]));
  return widths.map((width) => `${Math.min(widest, Math.max(narrowest, width))}ch + 1.5rem`);
}

function spread(table, isVast, content) {
  if (!isVast) return;
  const widths = widthsOf(content);
  const all = content.label ? ['7.5rem', ...widths] : widths;
  const tracks = all.map((width, at) => (at === all.length - 1 ? `minmax(calc(${width}), 1fr)` : `calc(${width})`));
  table.style.setProperty('--columns', tracks.join(' '));
  table.style.setProperty('--wide', `calc(${all.join(' + ')})`);
}

/**
 * A table of values in a region that scrolls by itself. `content` is `{names, rows, keys?, label?}`: names of columns, rows as lists of
 * values, their keys, and what the button of a row says; `onPress` is told which row. `heads` are drawn above the columns.
 */
export function Grid({ caption, heads, sort, content, onPress, empty }) {
  const id = useId();
  const [table, body] = [useRef(null), useRef(null)];
  const isVast = content.rows.length * content.names.length > vastCells;
  useLayoutEffect(() => {
    spread(table.current, isVast, content);
    fill(body.current, content);
  }, [content]);
  const press = (event) => {
    const row = event.target.closest('button') && event.target.closest('tr');
    if (row) onPress(row.sectionRowIndex);
  };
  return html`<div class=${`table dense ${isVast ? 'vast' : ''}`} role="region" aria-labelledby=${id} tabindex="0"><table ref=${table}>
    <caption id=${id} class="hidden">${caption}</caption>
    <thead><tr>${heads.map((head, at) => html`<th scope="col" key=${at} aria-sort=${sort?.(at)}>${head}</th>`)}</tr></thead>
    <tbody ref=${body} onClick=${onPress && press}></tbody>
  </table></div>${!content.rows.length && empty ? html`<div class="empty">${empty}</div>` : ''}`;
}
