// A field for source or SQL: CodeMirror, loaded when the first one is opened. A plain text field stands in while it is on its way, and
// where it cannot be had.
import { useEffect, useLayoutEffect, useId, useRef, useState } from 'preact/hooks';
import { begin } from 'app/load.js';
import { keepBreaks } from 'app/breaks.js';
import { html, useMay, whyNot } from 'app/ui.js';

let asked;
const load = () => (asked ??= import('editor').catch(() => ((asked = undefined), null)));

/**
 * `fault` marks a place, `{line, column}`. `schema` is what SQL is completed from: columns by table.
 */
export function Editor({ label, value, onChange, onRun, kind, schema, needs, readOnly, placeholder, fault, hint, size = '' }) {
  const id = useId();
  const place = useRef(null);
  const editor = useRef(null);
  const plain = useRef(null);
  const latest = useRef({ value });
  const [made, setMade] = useState(undefined);
  const may = useMay()(needs);
  const isLocked = readOnly || !may;
  // Typed text comes back as the value a little later, when more may be typed: it is told from a text that somebody else has set.
  const typed = useRef([]);
  latest.current.onRun = onRun;
  latest.current.onChange = (text) => {
    latest.current.value = keepBreaks(latest.current.value, text);
    typed.current.push(latest.current.value);
    onChange?.(latest.current.value);
  };
  const described = [hint, !may && whyNot(needs)].filter(Boolean).join(' ');
  useLayoutEffect(() => {
    const done = begin();
    let isGone = false;
    load().then((library) => {
      if (isGone) return;
      if (library) {
        const had = document.activeElement === plain.current;
        editor.current = library.createEditor({
          parent: place.current,
          text: latest.current.value,
          label,
          describedBy: described,
          kind,
          schema,
          readOnly: isLocked,
          placeholder,
          onChange: (text) => latest.current.onChange(text),
          onRun: onRun && (() => latest.current.onRun()),
        });
        if (had) editor.current.focus();
      }
      setMade(Boolean(library));
      done();
    });
    return () => {
      isGone = true;
      done();
      editor.current?.destroy();
    };
  }, []);
  useLayoutEffect(() => {
    const at = typed.current.lastIndexOf(value);
    if (at >= 0) return void typed.current.splice(0, at + 1);
    typed.current = [];
    latest.current.value = value;
    editor.current?.setText(value);
  }, [value]);
  useEffect(() => editor.current?.setKind(kind, schema), [kind, schema, made]);
  useEffect(() => editor.current?.setReadOnly(isLocked), [isLocked, made]);
  useEffect(() => {
    if (fault?.line) editor.current?.markFault(fault.line, fault.column);
  }, [fault, made]);
  const keys = (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !onRun) return;
    event.preventDefault();
    onRun();
  };
  return html`<div class=${`field wide editor ${size}`}>
    <label for=${id} onClick=${() => editor.current?.focus()}>${label}</label>
    <div class="frame" hidden=${!made} ref=${place}></div>
    ${made ? '' : html`<textarea id=${id} ref=${plain} class="code" aria-label=${label} rows="10" spellcheck=${false} value=${value} readOnly=${isLocked} placeholder=${placeholder} onInput=${(event) => latest.current.onChange(event.currentTarget.value)} onKeyDown=${keys}></textarea>`}
    ${described && html`<p class="hint">${described}</p>`}
  </div>`;
}

/** What differs between two texts; side by side where there is room. */
export function Difference({ before, after, labels, kind }) {
  const place = useRef(null);
  const [failed, fail] = useState(false);
  const isWide = useWide('(min-width: 56.25rem)');
  useLayoutEffect(() => {
    const done = begin();
    let view;
    let isGone = false;
    load().then((library) => {
      if (isGone) return;
      if (library) view = library.createDiff({ parent: place.current, before, after, labels, kind, sideBySide: isWide });
      else fail(true);
      done();
    });
    return () => {
      isGone = true;
      done();
      view?.destroy();
    };
  }, [before, after, isWide, kind]);
  return html`<div class="frame diff" ref=${place} hidden=${failed}></div>${failed && html`<pre tabindex="0">${after}</pre>`}`;
}

function useWide(query) {
  const [is, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const look = () => set(media.matches);
    media.addEventListener('change', look);
    return () => media.removeEventListener('change', look);
  }, [query]);
  return is;
}
