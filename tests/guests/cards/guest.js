// A renderer in JavaScript: tables of CSV become cards, one for each row, and everything else a plain page.
import { rows } from './csv.js';

const styles = `
:root{color-scheme:light dark}
body{margin:0 auto;padding:2rem 1rem;max-width:60rem;font:1rem/1.6 system-ui,sans-serif;overflow-wrap:anywhere}
.cards{display:grid;gap:1rem;grid-template-columns:repeat(auto-fill,minmax(16rem,1fr));padding:0;list-style:none}
.cards>li{padding:1rem;border:1px solid #8888;border-radius:.5rem}
dl{margin:0}dt{font-size:.85rem}dd{margin:0 0 .5rem;white-space:pre-wrap}
pre{white-space:pre-wrap}`;

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;', '\0': '\ufffd' };

/** Text that is no markup any more. */
function escape(text) {
  return text.replace(/[&<>"'\0]/g, (character) => entities[character]);
}

/** How many bytes a text has in UTF-8: half of a pair counts as one. Only asked of a page that may have too many. */
function bytes(text) {
  let count = 0;
  for (const character of text) {
    const code = character.codePointAt(0);
    count += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return count;
}

/** The one script that a page may be given, or nothing. */
function script(runtime) {
  return runtime ? `<script src="${escape(runtime.src)}" data-slug="${escape(runtime.slug)}"></script>` : '';
}

/** The title that the page was given, else the name that was wished for, if any. */
function titleOf(source) {
  return (source.title ?? '').trim() || source.name;
}

/** A whole document around a body. */
function document(source, body) {
  const title = escape(titleOf(source) || 'Untitled');
  return (
    `<!DOCTYPE html><html lang="en"><head>${script(source.runtime)}<meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>` +
    `<style>${styles}</style></head><body><main>${body}</main></body></html>`
  );
}

/** A row as a card: each cell under the name of its column. */
function card(names, row) {
  const width = Math.max(names.length, row.length);
  const cells = Array.from({ length: width }, (_, at) => {
    const name = names[at]?.trim() || `Column ${at + 1}`;
    return `<dt>${escape(name)}</dt><dd>${escape(row[at] ?? '')}</dd>`;
  });
  return `<li><dl>${cells.join('')}</dl></li>`;
}

function csv(source) {
  const [names = [], ...rest] = rows(source.text);
  return document(source, `<ul class="cards">${rest.map((row) => card(names, row)).join('')}</ul>`);
}

function json(source) {
  try {
    JSON.parse(source.text);
  } catch {
    throw { tag: 'malformed', val: { message: 'This is no JSON.' } };
  }
  return text(source);
}

function text(source) {
  return document(source, `<pre>${escape(source.text)}</pre>`);
}

/** HTML is its author's, but for the runtime's script: after the head's tag, the root's, the doctype, or first. */
function html(source) {
  const added = script(source.runtime);
  if (!added) return source.text;
  for (const tag of [/<head(\s[^>]*)?>/i, /<html(\s[^>]*)?>/i, /^\ufeff?\s*<!doctype[^>]*>/i]) {
    const found = tag.exec(source.text);
    if (found) {
      const end = found.index + found[0].length;
      return source.text.slice(0, end) + added + source.text.slice(end);
    }
  }
  return added + source.text;
}

const types = { csv, html, json, markdown: text, mermaid: text };

export const renderer = {
  render(source) {
    const type = Object.hasOwn(types, source.contentType) && types[source.contentType];
    if (!type) throw { tag: 'unsupported' };
    const page = type(source);
    if (page.length * 3 > source.pageBytes && bytes(page) > source.pageBytes) throw { tag: 'too-large' };
    return { html: page, diagrams: [], title: titleOf(source) };
  },

  draw() {
    throw { tag: 'unsupported' };
  },
};
