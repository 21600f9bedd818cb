// Fields for values: one a bind or a column, each with the type that its value is sent as.
import { Field, html, options, useMay } from 'app/ui.js';
import { typeNames } from 'app/values.js';

/** `value` is `{type, text}`; `types` are those that may be chosen. */
export function ValueField({ name, value, types, onChange, error, hint, needs, required }) {
  const may = useMay()(needs);
  const type = (text) => onChange({ type: value.type === 'null' || value.type === 'default' ? (value.natural ?? 'auto') : value.type, text, natural: value.natural });
  // Lines of a long text are not broken, and the field does not fit it: browsers take seconds a key for both.
  const isLong = value.text.length > 2000;
  const isNothing = value.type === 'null' || value.type === 'default';
  return html`<div class="value">
    <${Field} label=${name} as="textarea" rows=${isLong ? 12 : 1} class=${isLong ? 'code long' : 'code fitting'} value=${isNothing ? '' : value.text} placeholder=${isNothing ? typeNames[value.type] : value.text === '' ? 'empty text' : ''} onInput=${type} error=${error} hint=${hint} needs=${needs} required=${required} />
    <select aria-label=${`Type of ${name}`} value=${value.type} disabled=${!may} onChange=${(event) => onChange({ ...value, type: event.currentTarget.value })}>${options(types.map((one) => [one, typeNames[one]]))}</select>
  </div>`;
}

export const Parameters = ({ children, hint }) => html`<fieldset class="values"><legend>Parameters</legend>${hint}${children}</fieldset>`;
