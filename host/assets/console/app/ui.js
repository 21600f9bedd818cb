// What all screens are made of. A value is text, everywhere: nothing here takes markup.
import { h } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { createContext } from 'preact';
import { signal } from '@preact/signals';
import htm from 'htm';
import { travelled, useRun } from 'app/load.js';
import { isAtLeast } from 'app/session.js';

export const html = htm.bind(h);

// ---- texts

// Characters that nobody sees, or that turn the text around them: told by their numbers.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const name = (character) => (character === '\0' ? '␀' : `⟪U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟫`);

/** Whether a text has nothing to spell out. */
export const isPlain = (text) => !unseen.test(text);

/** Answers a text with its unseen characters spelled out. */
export const spelled = (text) => (unseen.test(text) ? text.replace(new RegExp(unseen, 'g'), name) : text);

const pieces = new RegExp(`(${unseen.source})`);

/** Answers a text in parts, each with whether it stands for a character that nobody sees. */
export const unseenParts = (text) => text.split(pieces).filter(Boolean).map((part) => (unseen.test(part) ? [name(part), true] : [part, false]));

/** Somebody's text, in a direction of its own. */
export function Text({ of }) {
  const text = String(of ?? '');
  if (isPlain(text)) return html`<bdi>${text}</bdi>`;
  return html`<bdi>${unseenParts(text).map(([part, isUnseen]) => (isUnseen ? html`<span class="unseen">${part}</span>` : part))}</bdi>`;
}

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const second = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time of the server's, here; UTC is in its title. */
export function Time({ at, fine }) {
  if (!at) return '–';
  return html`<time datetime=${at} title=${at}>${(fine ? second : day).format(new Date(at))}</time>`;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

export function size(bytes) {
  const units = ['bytes', 'KB', 'MB', 'GB'];
  const step = bytes < 1024 ? 0 : Math.min(3, Math.floor(Math.log2(bytes) / 10));
  const number = bytes / 1024 ** step;
  return `${step ? number.toFixed(number < 10 ? 1 : 0) : number} ${units[step]}`;
}

// ---- what was done

/** What was done last; there is one status on each screen. */
export const message = signal('');
let clearing;
export function say(text) {
  message.value = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => (message.value = ''), 20_000);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}.`);
  } catch {
    say('The browser did not let this be copied: select it, and copy it yourself.');
  }
}

/** Offers bytes of this tab as a file. */
export function save(bytes, fileName, type) {
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  const link = Object.assign(document.createElement('a'), { href: url, download: fileName });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// ---- roles

/** The caller's role where the reader is. */
export const Role = createContext(undefined);
export const useMay = () => {
  const role = useContext(Role);
  return (needed) => !needed || isAtLeast(role, needed);
};
const articles = { editor: 'An editor', admin: 'An admin', owner: 'An owner' };
export const whyNot = (needed) => `${articles[needed]} of the workspace may do this.`;

// ---- controls

/** A button. One that the role may not press, or that is off for now, stays where it is and says why. */
export function Button({ needs, busy, off, why, children, onClick, type = 'button', ...rest }) {
  const id = useId();
  const may = useMay()(needs);
  const reason = may ? (off ? why : '') : whyNot(needs);
  const isOff = !may || off || busy;
  // The screen itself says what viewers may not do; that something is for admins or owners is said beside it.
  const isSaid = !may && needs !== 'editor' && !rest.class?.includes('small');
  const press = (event) => {
    if (isOff) event.preventDefault();
    else onClick?.(event);
  };
  return html`<button type=${type} ...${rest} onClick=${press} aria-disabled=${isOff ? 'true' : undefined} aria-describedby=${isSaid ? id : rest['aria-describedby']} title=${reason || rest.title}>${children}</button>${isSaid && html`<span id=${id} class="why">${reason}</span>`}`;
}

export function Switch({ label, on, onChange, needs, busy, hint }) {
  return html`<${Button} role="switch" class="switch" aria-checked=${String(Boolean(on))} needs=${needs} busy=${busy} onClick=${() => onChange(!on)} aria-describedby=${hint}><span class="knob" aria-hidden="true"></span>${label}</${Button}>`;
}

/** A labelled field; `as` is its element. What is wrong with it stands below it. */
export function Field({ label, as = 'input', value, onInput, hint, error, needs, wide, children, readOnly, ...rest }) {
  const id = useId();
  const may = useMay()(needs);
  const isSelect = as === 'select';
  const said = [error && `${id}-error`, (hint || !may) && `${id}-hint`].filter(Boolean).join(' ');
  const props = {
    id,
    ...rest,
    value,
    [isSelect ? 'onChange' : 'onInput']: (event) => onInput?.(event.currentTarget.value),
    'aria-describedby': said || undefined,
    'aria-invalid': error ? 'true' : undefined,
    // Neither a choice nor a file can be read only.
    ...(isSelect || rest.type === 'file' ? { disabled: !may || readOnly } : { readOnly: !may || readOnly }),
  };
  if (as === 'textarea') Object.assign(props, { spellcheck: false, autocapitalize: 'off' });
  return html`<div class=${wide ? 'field wide' : 'field'}>
    <label for=${id}>${label}</label>
    ${h(as, props, children)}
    ${error && html`<p class="wrong" id=${`${id}-error`}>${error}</p>`}
    ${(hint || !may) && html`<p class="hint" id=${`${id}-hint`}>${may ? hint : whyNot(needs)}</p>`}
  </div>`;
}

export const options = (pairs) => pairs.map(([value, text]) => html`<option value=${value} key=${value}>${text}</option>`);

/** A problem, where it belongs. */
export function Fault({ of, children }) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    setLeft(of?.status === 429 ? (of.retryAfter ?? 60) : 0);
    if (of?.status !== 429) return undefined;
    const timer = setInterval(() => setLeft((n) => Math.max(0, n - 1)), 1000);
    return () => clearInterval(timer);
  }, [of]);
  if (!of || (of.status === 401 && of.code === 'unauthorized')) return null;
  const place = of.position ? ` (line ${of.position.line}, column ${of.position.column})` : of.line ? ` (line ${of.line}${of.column ? `, column ${of.column}` : ''})` : '';
  return html`<div class="fault" role="alert" data-code=${of.code}>
    <p><strong>${of.title}</strong>${place}</p>
    ${of.detail && html`<p><${Text} of=${of.detail} /></p>`}
    ${of.reason && !of.detail?.includes(of.reason) && html`<p><${Text} of=${of.reason} /></p>`}
    ${of.status === 429 && html`<p>${left ? `Again in ${count(left, 'second')}.` : 'You can try again now.'}</p>`}
    <p class="quiet"><code>${of.code}</code>${of.request_id && html` · request <code>${of.request_id}</code>`}</p>
    ${children}
  </div>`;
}

/** Shows what a load has, or why it has nothing. */
export function Loaded({ load, children }) {
  return html`<${Fault} of=${load.problem} />${load.value === undefined ? !load.problem && html`<p class="waiting">Loading…</p>` : children(load.value)}`;
}

// ---- parts of a screen

/** A screen: its one heading is the beginning of the document's title. */
export function Screen({ title, lead, actions, about, children }) {
  const heading = useRef(null);
  useLayoutEffect(() => {
    document.title = [spelled(title), about && spelled(about), 'svc'].filter(Boolean).join(' · ');
  }, [title, about]);
  useLayoutEffect(() => {
    if (travelled.yes) heading.current.focus();
    travelled.yes = false;
  }, []);
  return html`<div class="head"><div><h1 tabindex="-1" ref=${heading}><${Text} of=${title} /></h1>${lead && html`<p class="lead">${lead}</p>`}</div>${actions && html`<div class="actions">${actions}</div>`}</div>${children}`;
}

/** A table in a region that scrolls by itself. `columns` are its heads, `numbers` those that have numbers; rows come as they are. Without any, `empty` says what to do. */
export function Table({ caption, columns, rows, empty, sort, numbers = [], class: kind = '' }) {
  const id = useId();
  return html`<div class="table ${kind}" role="region" aria-labelledby=${id} tabindex="0"><table>
    <caption id=${id} class="hidden">${caption}</caption>
    <thead><tr>${columns.map((column, at) => html`<th scope="col" key=${at} class=${numbers.includes(at) ? 'number' : undefined} aria-sort=${sort?.(at)}>${column}</th>`)}</tr></thead>
    <tbody>${rows}</tbody>
  </table></div>${!rows.length && empty ? html`<div class="empty">${empty}</div>` : ''}`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

/** Lines for a shell or an agent, with a button that copies them. */
export function Lines({ text, label, what }) {
  return html`<div class="lines"><pre tabindex="0">${text}</pre><${Button} class="small" onClick=${() => copy(text, what ?? 'the lines')}>${label ?? 'Copy lines'}</${Button}></div>`;
}

/** A dialog that is open as long as it is drawn. The focus goes back to where it was. */
export function Dialog({ title, onClose, children, wide }) {
  const box = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = box.current;
    const opener = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  const cancel = (event) => {
    if (event.target !== box.current) return;
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby=${id} onCancel=${cancel}><h2 id=${id}>${title}</h2>${children}</dialog>`;
}

/** Asks before something is lost: the dialog is named like the button that led to it. */
export function Ask({ title, work, onClose, children, off, why }) {
  const doing = useRun(async () => {
    await work();
    onClose();
  });
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${(event) => (event.preventDefault(), off || doing.run())}>
      ${children}
      <${Fault} of=${doing.problem} />
      <div class="actions"><${Button} onClick=${onClose}>Cancel</${Button}><${Button} type="submit" class="danger" busy=${doing.busy} off=${off} why=${why}>${title}</${Button}></div>
    </form>
  </${Dialog}>`;
}

/** A form whose button runs something; the browser says what is missing. */
export function Form({ onSubmit, children, ...rest }) {
  return html`<form ...${rest} onSubmit=${(event) => (event.preventDefault(), onSubmit())}>${children}</form>`;
}
