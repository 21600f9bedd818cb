// Any statement of the owner's. It reads, unless the switch says that it may write.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { readDraft, keepDraft } from 'app/session.js';
import { Editor } from 'app/editor.js';
import { Parameters, ValueField } from 'app/fields.js';
import { NoDatabase, useBackend } from 'app/project.js';
import { Result } from 'app/result.js';
import { bindsOf, quote } from 'app/statements.js';
import { typed } from 'app/values.js';
import { useDraft, useRun } from 'app/load.js';
import { Button, Fault, Loaded, Screen, Switch, html, spelled } from 'app/ui.js';

const types = ['auto', 'text', 'integer', 'real', 'blob', 'null'];
const fresh = { type: 'auto', text: '', natural: 'auto' };

/** Answers what SQL is completed from. */
export const completions = (backend) => backend && Object.fromEntries(backend.schema.tables.map((table) => [table.name, table.columns.map((column) => column.name)]));

/** A member by a name that somebody typed, which may be that of something every object has. */
export const own = (of, name) => (Object.hasOwn(of, name) ? of[name] : undefined);

/** Reads the values of binds; throws what is wrong, by the bind. */
export function readBinds(names, fields) {
  const [params, errors] = [Object.create(null), Object.create(null)];
  for (const name of names) {
    const { type, text } = own(fields, name) ?? fresh;
    try {
      params[name] = typed(type, text);
    } catch (error) {
      errors[name] = error.message;
    }
  }
  return { params, errors };
}

export function Binds({ names, fields, onChange, errors, needs, hints = {}, more = [] }) {
  if (!names.length) return null;
  return html`<${Parameters}>${names.map((name) => html`<${ValueField} key=${name} name=${name} value=${own(fields, name) ?? own(hints, name)?.value ?? fresh} types=${[...more, ...types]} error=${own(errors, name)} hint=${own(hints, name)?.text} needs=${needs} onChange=${(next) => onChange({ ...fields, [name]: next })} />`)}</${Parameters}>`;
}

const lastOnes = 20;

/** A statement to begin with: the rows of the first table. */
const first = (backend) => (backend.schema.tables[0] ? `SELECT * FROM ${plainName(backend.schema.tables[0].name)} LIMIT 20` : 'SELECT 1');
const plainName = (name) => (/^[a-z_]\w*$/i.test(name) ? name : quote(name));

function Console({ project, backend }) {
  const [sql, setSql] = useDraft(`${project}:sql`, first(backend));
  const [fields, setFields] = useDraft(`${project}:sql:binds`, {});
  const [readOnly, setReadOnly] = useState(true);
  const [past, setPast] = useState(() => readDraft(`${project}:sql:past`) ?? []);
  const [shown, show] = useState(null);
  const [errors, setErrors] = useState({});
  const names = bindsOf(sql);
  const run = useRun(async (mayWrite) => {
    const read = readBinds(names, fields);
    setErrors(read.errors);
    if (Object.keys(read.errors).length) return;
    const began = performance.now();
    const body = { sql, params: read.params, read_only: mayWrite ? false : readOnly };
    const result = await call('query_backend', { project, body });
    show({ result, sql, took: Math.round(performance.now() - began) });
    const next = [sql, ...past.filter((one) => one !== sql)].slice(0, lastOnes);
    setPast(next);
    keepDraft(`${project}:sql:past`, next);
  });
  const isRefusedWrite = readOnly && run.problem?.code === 'forbidden';
  const allow = () => {
    setReadOnly(false);
    run.run(true);
  };
  return html`
    <${Editor} label="SQL" value=${sql} onChange=${setSql} onRun=${() => run.run()} kind="sql" schema=${completions(backend)} fault=${run.problem?.position} hint="Ctrl+Enter runs it. Esc, then Tab leaves the field." />
    <${Binds} names=${names} fields=${fields} onChange=${setFields} errors=${errors} />
    <div class="actions"><${Switch} label="Read only" on=${readOnly} onChange=${setReadOnly} needs="editor" /><span class="push"></span><${Button} class="main" busy=${run.busy} aria-keyshortcuts="Control+Enter" onClick=${() => run.run()}>Run</${Button}></div>
    ${isRefusedWrite
      ? html`<div class="fault" role="alert" data-code="forbidden"><p><strong>This changes rows</strong></p><p>The server judged the statement, and nothing was changed. Allow writes to run it.</p><div class="actions"><${Button} class="danger" needs="editor" onClick=${allow}>Allow writes</${Button}></div></div>`
      : html`<${Fault} of=${run.problem}>${run.problem?.code === 'query_timeout' && html`<p>Add an index in <a href=${`/p/${project}/schema`}>Schema</a>, or a LIMIT.</p>`}</${Fault}>`}
    ${shown && html`<section><h2>${shown.sql === sql ? 'Answer' : 'Answer of an earlier statement'}</h2>${shown.sql !== sql && html`<pre class="asked" tabindex="0">${spelled(shown.sql)}</pre>`}<${Result} key=${shown.took + shown.sql} result=${shown.result} took=${shown.took} /></section>`}
    ${past.length > 0 && html`<details class="card"><summary>Last statements of this tab</summary><ul class="past">${past.map((one) => html`<li key=${one}><button type="button" class="plain" onClick=${() => setSql(one)}><code>${spelled(one.length > 160 ? `${one.slice(0, 160)}…` : one)}</code></button></li>`)}</ul></details>`}`;
}

export function Sql({ project, about }) {
  const backend = useBackend(project);
  return html`<${Screen} title="SQL" about=${about} lead="One statement at a time, in a transaction of its own.">
    <${Loaded} load=${backend}>${(value) => (value ? html`<${Console} project=${project} backend=${value} />` : html`<${NoDatabase} project=${project}>Statements run here.</${NoDatabase}>`)}</${Loaded}>
  </${Screen}>`;
}

