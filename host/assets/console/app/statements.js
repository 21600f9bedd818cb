// The statements of the data screen. Names are quoted, and values are always bound.
import { common } from 'app/breaks.js';
import { write } from 'app/exact.js';
import { affinity, guess, shownCharacters, typeOf } from 'app/values.js';

export const quote = (name) => `"${name.replaceAll('"', '""')}"`;

export const pageRows = 100;
export const maxColumns = 40;
// A request of the API has 64 KB; the statement and the names of binds need some of it.
const bodyBytes = 60_000;
const longBytes = 256;
// Columns whose values must be as they were read; of wider tables those that are changed, too.
const compared = 25;

/** Answers how a table's rows are told apart: by its primary key, else by the row's number. */
export function keyOf(table) {
  const keys = table.columns.filter((column) => column.primary_key).map((column) => column.name);
  if (keys.length) return keys;
  const taken = new Set(table.columns.map((column) => column.name.toLowerCase()));
  const free = ['rowid', '_rowid_', 'oid'].find((name) => !taken.has(name));
  return free ? [free] : [];
}

// The server shortens the longest value that a statement may meet by what the statement does with each. Cutting is dear: so many columns of a
// page are cut that values of any length still pass, those first that may have long ones.
const cutting = 12.5;
const reading = 1.6;
const budget = 165;

/** Answers a cell: one of more bytes than this many characters may have comes as one character more than is shown. */
function cell(column, at, isCut) {
  const name = quote(column.name);
  return isCut ? `CASE WHEN octet_length(${name}) > ${4 * (shownCharacters + 1)} THEN substr(${name}, 1, ${shownCharacters + 1}) ELSE ${name} END AS c${at}` : `${name} AS c${at}`;
}

function condition({ column, operator, value }, table) {
  const name = quote(column);
  const declared = table.columns.find((one) => one.name === column)?.type ?? '';
  const kind = affinity(declared);
  const bound = kind === 'text' ? value : guess(value);
  switch (operator) {
    case 'contains':
      return { sql: `instr(lower(${name}), lower(:value)) > 0`, params: { value } };
    case '≠':
      return { sql: `${name} IS NOT :value`, params: { value: bound } };
    case 'is NULL':
      return { sql: `${name} IS NULL`, params: {} };
    case 'is not NULL':
      return { sql: `${name} IS NOT NULL`, params: {} };
    default:
      return { sql: `${name} ${operator} :value`, params: { value: bound } };
  }
}

export const operators = ['=', '≠', '<', '>', 'contains', 'is NULL', 'is not NULL'];

/** A page of rows. Columns are answered by number, so that no name of theirs can be in the way. */
export function selectRows(table, { sort, filter, offset = 0, limit = pageRows + 1, isWhole = false }) {
  const columns = table.columns.slice(0, maxColumns);
  const keys = keyOf(table);
  const most = isWhole ? 0 : Math.floor((budget - reading * columns.length) / cutting);
  const long = columns.filter((column) => ['text', 'any'].includes(affinity(column.type)) && !keys.includes(column.name));
  const cut = new Set(long.slice(0, most));
  const cells = columns.map((column, at) => cell(column, at, cut.has(column)));
  const where = filter?.column ? condition(filter, table) : { sql: '', params: {} };
  const order = [sort?.column && `${quote(sort.column)} ${sort.down ? 'DESC' : 'ASC'}`, ...keys.map(quote)].filter(Boolean);
  const sql = [
    `SELECT ${[...cells, ...keys.map((key, at) => `${quote(key)} AS k${at}`)].join(', ')}`,
    `FROM ${quote(table.name)}`,
    where.sql && `WHERE ${where.sql}`,
    order.length && `ORDER BY ${order.join(', ')}`,
    `LIMIT ${limit} OFFSET ${offset}`,
  ];
  return { sql: sql.filter(Boolean).join(' '), params: where.params };
}

/** The rows of a view, which has no columns that anybody knows before it is read. */
export const selectView = (name, { offset = 0, limit = pageRows + 1 }) => ({ sql: `SELECT * FROM ${quote(name)} LIMIT ${limit} OFFSET ${offset}`, params: {} });

const byKey = (keys, key) => ({ sql: keys.map((name, at) => `${quote(name)} IS :k${at}`).join(' AND '), params: Object.fromEntries(keys.map((_, at) => [`k${at}`, key[at]])) });

/** One row, whole. */
export function selectRow(table, key) {
  const keys = keyOf(table);
  const where = byKey(keys, key);
  return { sql: `SELECT ${table.columns.map((column, at) => `${quote(column.name)} AS c${at}`).join(', ')} FROM ${quote(table.name)} WHERE ${where.sql}`, params: where.params };
}

const encoder = new TextEncoder();
const bytes = (value) => encoder.encode(write(value)).length;

/** Conditions by which a row is still the one that was read. A long value is compared by its length: what is changed of it is compared whole. */
function stillIs(table, old, changed = new Map()) {
  const params = {};
  const parts = table.columns.flatMap((column, at) => {
    const value = old[at];
    const name = quote(column.name);
    if (at >= compared && !changed.has(at)) return [];
    if (bytes(value) <= longBytes) {
      params[`o${at}`] = value;
      return [`${name} IS :o${at}`];
    }
    params[`o${at}`] = typeOf(value) === 'text' ? encoder.encode(value).length : atob(value.base64).length;
    return [`octet_length(${name}) IS :o${at}`];
  });
  return { sql: parts, params };
}

/**
 * Replaces the part of a long text that was edited. A request has no room for both texts, so that the part is named by its place in bytes,
 * and the old part must still be there.
 */
function splice(name, at, before, after) {
  const { start, end } = common(before, after);
  const [from, old] = [encoder.encode(before.slice(0, start)).length, before.slice(start, before.length - end)];
  const length = encoder.encode(old).length;
  const blob = `CAST(${name} AS BLOB)`;
  return {
    set: `CAST(substr(${blob}, 1, :f${at}) || CAST(:n${at} AS BLOB) || substr(${blob}, :t${at}) AS TEXT)`,
    where: length ? [`CAST(substr(${blob}, :f${at} + 1, :l${at}) AS TEXT) IS :p${at}`] : [],
    params: { [`f${at}`]: from, [`n${at}`]: after.slice(start, after.length - end), [`t${at}`]: from + length + 1, ...(length ? { [`l${at}`]: length, [`p${at}`]: old } : {}) },
  };
}

/** Changes a row that is still the one that was read; `changes` are new values by the column's number. */
export function updateRow(table, key, old, changes) {
  const keys = byKey(keyOf(table), key);
  const same = stillIs(table, old, changes);
  const params = { ...keys.params, ...same.params };
  const [sets, wheres] = [[], [keys.sql, ...same.sql]];
  for (const [at, value] of changes) {
    const name = quote(table.columns[at].name);
    if (typeof value === 'string' && typeof old[at] === 'string' && bytes(old[at]) > longBytes * 8) {
      const part = splice(name, at, old[at], value);
      sets.push(`${name} = ${part.set}`);
      wheres.push(...part.where);
      Object.assign(params, part.params);
    } else {
      sets.push(`${name} = :n${at}`);
      params[`n${at}`] = value;
    }
  }
  return checked({ sql: `UPDATE ${quote(table.name)} SET ${sets.join(', ')} WHERE ${wheres.join(' AND ')}`, params });
}

export function insertRow(table, values) {
  const params = Object.fromEntries([...values].map(([at, value]) => [`n${at}`, value]));
  const names = [...values.keys()].map((at) => quote(table.columns[at].name));
  const sql = names.length ? `INSERT INTO ${quote(table.name)} (${names.join(', ')}) VALUES (${Object.keys(params).map((name) => `:${name}`).join(', ')})` : `INSERT INTO ${quote(table.name)} DEFAULT VALUES`;
  return checked({ sql, params });
}

export function deleteRow(table, key, old) {
  const keys = byKey(keyOf(table), key);
  const same = stillIs(table, old);
  return checked({ sql: `DELETE FROM ${quote(table.name)} WHERE ${[keys.sql, ...same.sql].join(' AND ')}`, params: { ...keys.params, ...same.params } });
}

function checked(statement) {
  if (bytes(statement) > bodyBytes) throw new Error('This is more than one request can carry (64 KB): change less of a long text at once, or use an action.');
  return statement;
}

/** Answers the binds of a statement, in their order: names after a colon that are in no text, name or comment. */
export function bindsOf(sql) {
  const parts = /--[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|[:@$]([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)/g;
  const found = new Set();
  for (const [, name] of sql.matchAll(parts)) if (name) found.add(name);
  return [...found];
}

