// JSON without rounding. `JSON.parse` makes doubles of all numbers, and a column of a database may hold what no double is.

/** A number with a point or an exponent, as it was written: 1.0 is a REAL, and 1 is not. */
export class Real {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

const escapes = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
// Up to the first character that needs a look.
const plain = /[^"\\]*/y;

/**
 * Reads JSON. Integers that a number holds exactly are numbers, larger ones are BigInts, and others are `Real`s. Objects have
 * no prototype, so that any name may be a column's.
 */
export function read(text) {
  let at = 0;
  const fail = (what) => {
    throw new SyntaxError(`${what} at ${at}`);
  };
  const skip = () => {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      at++;
    }
  };
  const string = () => {
    // Most strings have nothing that needs a look.
    const end = text.indexOf('"', ++at);
    const whole = end < 0 ? fail('A string that does not end') : text.slice(at, end);
    if (!whole.includes('\\')) {
      at = end + 1;
      return whole;
    }
    let said = '';
    for (;;) {
      plain.lastIndex = at;
      const run = plain.exec(text)[0];
      at += run.length;
      said += run;
      const mark = text[at++];
      if (mark === '"') return said;
      if (mark === undefined) fail('A string that does not end');
      const letter = text[at++];
      if (letter === 'u') {
        said += String.fromCharCode(parseInt(text.slice(at, at + 4), 16));
        at += 4;
      } else said += escapes[letter] ?? fail('An unknown escape');
    }
  };
  const literal = (word, value) => {
    if (!text.startsWith(word, at)) fail('An unknown word');
    at += word.length;
    return value;
  };
  const list = () => {
    const items = [];
    at++;
    skip();
    if (text[at] === ']') return at++, items;
    for (;;) {
      items.push(value());
      skip();
      const mark = text[at++];
      if (mark === ']') return items;
      if (mark !== ',') fail('A list that does not end');
    }
  };
  const object = () => {
    const members = Object.create(null);
    at++;
    skip();
    if (text[at] === '}') return at++, members;
    for (;;) {
      skip();
      if (text[at] !== '"') fail('A member without a name');
      const name = string();
      skip();
      if (text[at++] !== ':') fail('A member without a value');
      members[name] = value();
      skip();
      const mark = text[at++];
      if (mark === '}') return members;
      if (mark !== ',') fail('An object that does not end');
    }
  };
  const value = () => {
    skip();
    switch (text[at]) {
      case '"':
        return string();
      case '{':
        return object();
      case '[':
        return list();
      case 't':
        return literal('true', true);
      case 'f':
        return literal('false', false);
      case 'n':
        return literal('null', null);
      default: {
        number.lastIndex = at;
        const found = number.exec(text) ?? fail('No value');
        at += found[0].length;
        if (found[1] || found[2]) return new Real(found[0]);
        const rounded = Number(found[0]);
        return Number.isSafeInteger(rounded) ? rounded : BigInt(found[0]);
      }
    }
  };
  const all = value();
  skip();
  if (at < text.length) fail('Something after the end');
  return all;
}

/** JSON that is sent as it was typed. */
export class Raw {
  constructor(text) {
    this.text = text;
  }
}

/** Writes JSON, with BigInts as the integers that they are. Members that are undefined are left out; a Map keeps any order of names. */
export function write(value, indent = '', inside = '') {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Real || value instanceof Raw) return value.text;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const deeper = inside + indent;
  const [before, between, end] = indent ? [`\n${deeper}`, `,\n${deeper}`, `\n${inside}`] : ['', ',', ''];
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => write(item, indent, deeper))
    : (value instanceof Map ? [...value] : Object.entries(value))
        .filter(([, item]) => item !== undefined)
        .map(([name, item]) => `${JSON.stringify(name)}:${indent && ' '}${write(item, indent, deeper)}`);
  const [open, close] = isList ? '[]' : '{}';
  return parts.length ? open + before + parts.join(between) + end + close : open + close;
}
