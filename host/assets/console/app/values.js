// Values of a database: how they are typed, and taken away as a file. `app/grid.js` shows them.
import { Real, write } from 'app/exact.js';

/** Characters of a value that a table shows. */
export const shownCharacters = 500;

export function typeOf(value) {
  if (value === null) return 'null';
  if (value instanceof Real) return 'real';
  if (typeof value === 'object') return 'blob';
  return typeof value === 'string' ? 'text' : 'integer';
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
