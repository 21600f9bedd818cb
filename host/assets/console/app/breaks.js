// Fields of a browser know one end of a line. What is stored may have others, and gets back those that nobody touched.

const simple = (text) => text.replace(/\r\n?/g, '\n');

/** Answers how much two texts have in common at their beginning and at their end; no surrogate pair is split. */
export function common(one, other) {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one.charCodeAt(start) === other.charCodeAt(start)) start++;
  const isPair = (text, at) => at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1]) && /[\udc00-\udfff]/.test(text[at]);
  if (isPair(one, start) || isPair(other, start)) start--;
  let end = 0;
  while (end < most - start && one.charCodeAt(one.length - 1 - end) === other.charCodeAt(other.length - 1 - end)) end++;
  if (isPair(one, one.length - end) || isPair(other, other.length - end)) end--;
  return { start, end };
}

/** Answers an edited text with the ends of lines that the original has where they are the same. */
export function keepBreaks(original, edited) {
  if (!original?.includes('\r')) return edited;
  const before = simple(original);
  const after = simple(edited);
  if (before === after) return original;
  const { start, end } = common(before, after);
  // Walks the original as far as so many characters of its simple form.
  const place = (characters) => {
    let at = 0;
    for (let n = 0; n < characters; n++) at += original.startsWith('\r\n', at) ? 2 : 1;
    return at;
  };
  const isWindows = !/[^\r]\n|^\n|\r(?!\n)/.test(original);
  const middle = after.slice(start, after.length - end);
  return original.slice(0, place(start)) + (isWindows ? middle.replaceAll('\n', '\r\n') : middle) + original.slice(place(before.length - end));
}
