// CSV as RFC 4180 has it: cells in quotes may hold commas, line breaks and doubled quotes.

/** The rows of a text, each as its cells. A byte order mark is dropped, and so is an empty line at the end. */
export function rows(text) {
  const found = [];
  let row = [];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  while (at < text.length) {
    let cell;
    if (text[at] === '"') {
      [cell, at] = quoted(text, at + 1);
    } else {
      const end = plainEnd(text, at);
      [cell, at] = [text.slice(at, end), end];
    }
    row.push(cell);
    if (text[at] === ',') {
      at += 1;
      // A comma that ends the text has an empty cell behind it.
      if (at === text.length) row.push('');
      continue;
    }
    if (text[at] === '\r' && text[at + 1] === '\n') at += 1;
    at += 1;
    found.push(row);
    row = [];
  }
  if (row.length > 0) found.push(row);
  return found;
}

/** A cell in quotes, from behind the first one; what stands behind the last one belongs to it as it is. */
function quoted(text, from) {
  let cell = '';
  let at = from;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return [cell + text.slice(at), text.length];
    cell += text.slice(at, quote);
    if (text[quote + 1] !== '"') {
      const end = plainEnd(text, quote + 1);
      return [cell + text.slice(quote + 1, end), end];
    }
    cell += '"';
    at = quote + 2;
  }
}

/** Where a cell without quotes ends. */
function plainEnd(text, from) {
  const ends = /[,\r\n]/g;
  ends.lastIndex = from;
  return ends.exec(text)?.index ?? text.length;
}
