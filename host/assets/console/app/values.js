// Values of a database: how they are shown, typed, and taken away as a file.
import { h } from 'preact';
import { Real, write } from 'app/exact.js';
import { Text, html, isPlain, size } from 'app/ui.js';

/** Characters of a value that a table shows. */
export const shownCharacters = 500;

export function typeOf(value) {
  if (value === null) return 'null';
  if (value instanceof Real) return 'real';
  if (typeof value === 'object') return 'blob';
  return typeof value === 'string' ? 'text' : 'integer';
}

const bytesOf = (value) => Uint8Array.from(atob(value.base64), (character) => character.charCodeAt(0));
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('').toUpperCase();

/**
 * Draws a cell. A value of more than some hundred characters is shown in part, and says so. Tables have thousands of these, so that a cell
 * is an element and no component; one of plain text has nothing inside but that text.
 */
export function cell(value, key) {
  const type = typeOf(value);
  if (type === 'null') return h('td', { key, 'data-type': type, class: 'null' }, 'NULL');
  if (type === 'integer' || type === 'real') return h('td', { key, 'data-type': type, class: 'number' }, String(value));
  if (type === 'blob') {
    const bytes = bytesOf(value);
    const most = 24;
    const isCut = bytes.length > most;
    const title = bytes.length > shownCharacters ? 'Longer than shown' : size(bytes.length);
    return h('td', { key, 'data-type': type, 'data-cut': isCut ? '' : undefined, class: 'blob', title }, `X'${hex(bytes.subarray(0, most))}${isCut ? '…' : ''}'`);
  }
  if (value === '') return h('td', { key, 'data-type': type, class: 'text none' });
  const isCut = value.length > shownCharacters;
  const splits = isCut && /[\ud800-\udbff]/.test(value[shownCharacters - 1]);
  const shown = isCut ? value.slice(0, splits ? shownCharacters - 1 : shownCharacters) : value;
  if (!isCut && isPlain(shown)) return h('td', { key, 'data-type': type, class: 'text', dir: /[^ -~]/.test(shown) ? 'auto' : undefined }, shown);
  return html`<td key=${key} data-type=${type} data-cut=${isCut ? '' : undefined} class="text" dir="auto"><${Text} of=${shown} />${isCut && html`<span class="more" title="Longer than shown">…</span>`}</td>`;
}

/** Answers what SQLite makes of a declared type. */
export function affinity(declared) {
  const type = declared.toUpperCase();
  if (type.includes('INT')) return 'integer';
  if (/CHAR|CLOB|TEXT/.test(type)) return 'text';
  if (type === '' || type.includes('BLOB')) return 'any';
  if (/REAL|FLOA|DOUB/.test(type)) return 'real';
  return 'numeric';
}

const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
const isInteger = (text) => /^-?(?:0|[1-9]\d*)$/.test(text) && BigInt(text) >= least && BigInt(text) <= most;
const isReal = (text) => /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

/** Reads what was typed as a value of a type. Throws what is wrong with it. */
export function typed(type, text) {
  switch (type) {
    case 'null':
      return null;
    case 'text':
      return text;
    case 'integer':
      if (!isInteger(text.trim())) throw new Error('An integer has digits alone, and 64 bits at most.');
      return BigInt(text.trim());
    case 'real': {
      const number = text.trim();
      if (!isReal(number) || !Number.isFinite(Number(number))) throw new Error('A real number looks like 1.5 or 2e10.');
      return new Real(/[.eE]/.test(number) ? number : `${number}.0`);
    }
    case 'blob':
      try {
        return { base64: btoa(atob(text.replace(/\s/g, ''))) };
      } catch {
        throw new Error('A BLOB is written in Base64.');
      }
    default:
      return guess(text);
  }
}

/** What a text means where nobody said its type: a number that it is exactly, else the text. */
export function guess(text) {
  if (isInteger(text)) return text === '-0' ? text : BigInt(text);
  return isReal(text) && /[.eE]/.test(text) && Number.isFinite(Number(text)) ? new Real(text) : text;
}

/** Answers the text that a field has for a value. */
export function asTyped(value) {
  if (value === null) return '';
  return typeOf(value) === 'blob' ? value.base64 : String(value);
}

export const typeNames = { auto: 'By itself', default: 'Default', text: 'Text', integer: 'Integer', real: 'Real', blob: 'BLOB', null: 'NULL' };

const isFormula = /^[=+\-@\t\r]/;

/** Rows as CSV (RFC 4180): NULL is nothing, an empty text is "". A text that a spreadsheet would run gets an apostrophe. */
export function toCsv({ columns, rows }) {
  const cell = (value) => {
    const type = typeOf(value);
    if (type === 'null') return '';
    if (type === 'blob') return value.base64;
    if (type !== 'text') return String(value);
    const text = isFormula.test(value) ? `'${value}` : value;
    return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns.map((name) => cell(name)), ...rows.map((row) => columns.map((name) => cell(row[name])))];
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}

/** Rows as JSON, exactly. */
export const toJson = ({ columns, rows }) => `${write(rows.map((row) => new Map(columns.map((name) => [name, row[name]]))), '  ')}\n`;
