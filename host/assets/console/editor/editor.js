// What the console needs of CodeMirror, as one file: an editor, and a view of what differs between two texts.
// Both stand in a shadow root: there the editor's styles are constructed sheets, which a policy without inline styles allows.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { SQLite, sql } from '@codemirror/lang-sql';
import { HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { html } from '@codemirror/legacy-modes/mode/xml';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { Compartment, EditorState, StateEffect, StateField } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  drawSelection,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder as placeholderText,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--code-keyword)' },
  { tag: [tags.string, tags.special(tags.string), tags.attributeValue], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--code-number)' },
  { tag: [tags.comment, tags.meta, tags.processingInstruction], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.tagName, tags.className], color: 'var(--code-name)' },
  { tag: [tags.attributeName, tags.propertyName], color: 'var(--code-property)' },
  { tag: tags.heading, fontWeight: '650', color: 'var(--code-keyword)' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: tags.strong, fontWeight: '650' },
  { tag: [tags.link, tags.url], color: 'var(--accent)', textDecoration: 'underline' },
]);

const theme = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--field)', fontSize: '.875rem', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', padding: '.6rem 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)', borderLeftWidth: '2px' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--muted)', border: '0' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 .5rem 0 .75rem' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { background: 'var(--code-selection) !important' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { background: 'var(--code-selection)', outline: '1px solid var(--line)' },
  '.cm-tooltip': { background: 'var(--bg)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '.35rem' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { background: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-specialChar': { color: 'var(--wrong)' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-fault': { textDecoration: 'underline wavy var(--wrong)', textUnderlineOffset: '.2em' },
  '.cm-changedText': { background: 'var(--code-new-text) !important' },
  '.cm-changedLine, .cm-inlineChangedLine': { background: 'var(--code-new) !important' },
  '&.cm-merge-a .cm-changedText, .cm-deletedText, .cm-deletedChunk .cm-deletedText': { background: 'var(--code-old-text) !important' },
  '&.cm-merge-a .cm-changedLine, .cm-deletedChunk': { background: 'var(--code-old) !important' },
  '.cm-collapsedLines': { background: 'var(--soft)', color: 'var(--text)' },
});

// Marks the place that a problem names, until the text is changed.
const markFault = StateEffect.define();
const faults = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) if (effect.is(markFault)) return effect.value;
    return transaction.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const language = (name, schema) =>
  ({
    sql: () => sql({ dialect: SQLite, schema, upperCaseKeywords: true }),
    html: () => StreamLanguage.define(html),
  })[name]?.() ?? [];

/** Makes room for an editor: a shadow root that is a cascade of its own. */
function room(parent) {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  const inner = document.createElement('div');
  inner.style.height = '100%';
  root.replaceChildren(inner);
  return { root, inner };
}

// Tab stays the browser's, so that nobody is caught in the editor; Ctrl+] and Ctrl+[ indent.
const basics = (label, describedBy) => [
  highlightSpecialChars(),
  drawSelection(),
  bracketMatching(),
  syntaxHighlighting(colours),
  theme,
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', ...(describedBy && { 'aria-description': describedBy }) }),
];

/**
 * Makes an editor in `parent`. `onChange` gets each new text, `onRun` is Ctrl+Enter.
 * Answers what the console does with it.
 */
export function createEditor({ parent, text, label, describedBy, kind, schema, readOnly, placeholder, onChange, onRun }) {
  const { root, inner } = room(parent);
  const kinds = new Compartment();
  const lock = new Compartment();
  const locked = (yes) => [EditorState.readOnly.of(yes), EditorView.contentAttributes.of(yes ? { 'aria-readonly': 'true', readonly: '' } : {})];
  const view = new EditorView({
    root,
    parent: inner,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: 'Mod-Enter', run: () => (onRun ? (onRun(), true) : false) }]),
        history(),
        indentUnit.of('  '),
        indentOnInput(),
        closeBrackets(),
        autocompletion({ activateOnTyping: kind === 'sql' }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        lineNumbers(),
        faults,
        placeholder ? placeholderText(placeholder) : [],
        kinds.of(language(kind, schema)),
        lock.of(locked(Boolean(readOnly))),
        basics(label, describedBy),
        EditorView.updateListener.of((update) => update.docChanged && onChange?.(update.state.doc.toString())),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText(next) {
      // A document has lines, and no ends of lines of its own.
      if (next.replace(/\r\n?/g, '\n') === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    setKind: (next, known) => view.dispatch({ effects: kinds.reconfigure(language(next, known)) }),
    setReadOnly: (yes) => view.dispatch({ effects: lock.reconfigure(locked(yes)) }),
    /** Marks a place by line and column, both from 1. */
    markFault(line, column = 1) {
      const doc = view.state.doc;
      const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
      const from = Math.min(at.from + column - 1, at.to);
      const word = /^[\p{L}\p{N}_]+|^./u.exec(doc.sliceString(from, at.to))?.[0].length ?? 0;
      const marks = word ? Decoration.set([Decoration.mark({ class: 'cm-fault' }).range(from, from + word)]) : Decoration.none;
      view.dispatch({ effects: [markFault.of(marks), EditorView.scrollIntoView(from)] });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/** Shows what differs between two texts: side by side, or in one column. */
export function createDiff({ parent, before, after, labels, kind, sideBySide }) {
  const { root, inner } = room(parent);
  const fixed = (label) => [EditorState.readOnly.of(true), EditorView.editable.of(false), lineNumbers(), language(kind), basics(label),
    EditorView.contentAttributes.of({ tabindex: '0', role: 'textbox', 'aria-readonly': 'true', 'aria-multiline': 'true' })];
  const collapseUnchanged = { margin: 3, minSize: 6 };
  const view = sideBySide
    ? new MergeView({
        root,
        parent: inner,
        a: { doc: before, extensions: fixed(labels[0]) },
        b: { doc: after, extensions: fixed(labels[1]) },
        collapseUnchanged,
        highlightChanges: true,
        gutter: true,
      })
    : new EditorView({
        root,
        parent: inner,
        doc: after,
        extensions: [fixed(labels[1]), unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged, gutter: true })],
      });
  return { destroy: () => view.destroy() };
}
