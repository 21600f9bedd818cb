// One row: read whole, changed, inserted, deleted. The statement is shown before it runs.
import { useEffect, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { dropDraft, keepDraft, readDraft } from 'app/session.js';
import { keepBreaks } from 'app/breaks.js';
import { write } from 'app/exact.js';
import { Parameters, ValueField } from 'app/fields.js';
import { deleteRow, insertRow, selectRow, updateRow } from 'app/statements.js';
import { affinity, asTyped, typeOf, typed } from 'app/values.js';
import { asProblem, refuse, useRun } from 'app/load.js';
import { Ask, Button, Dialog, Fault, Form, html, say, spelled, useMay } from 'app/ui.js';

const natural = (column) => ({ any: 'auto', numeric: 'auto' })[affinity(column.type)] ?? affinity(column.type);

/** Answers the fields of a row as they are before anybody types. */
function begin(table, old) {
  return table.columns.map((column, at) => {
    if (!old) return { type: 'default', text: '', natural: natural(column) };
    const type = typeOf(old[at]);
    return { type, text: asTyped(old[at]), natural: type === 'null' ? natural(column) : type };
  });
}

const isSame = (one, other) => write(one) === write(other);

/** Answers the new values by the column's number, and what is wrong with those that are none. */
function changesOf(table, old, fields) {
  const [changes, errors] = [new Map(), {}];
  fields.forEach((field, at) => {
    if (field.type === 'default') return;
    try {
      let value = typed(field.type, field.text);
      const before = old?.[at];
      if (typeof value === 'string' && typeof before === 'string') value = keepBreaks(before, value);
      if (!old || !isSame(value, before)) changes.set(at, value);
    } catch (error) {
      errors[at] = error.message;
    }
  });
  return { changes, errors };
}

/** Answers the column that a constraint names. */
function columnOf(table, problem) {
  const named = /constraint failed: ?(.*?)\.?$/.exec(problem?.detail ?? '')?.[1]?.split(', ')[0];
  return table.columns.findIndex((column) => named === `${table.name}.${column.name}`);
}

function Shown({ statement }) {
  return html`<details class="shown"><summary>The statement</summary><pre tabindex="0">${spelled(statement.sql)}</pre><p class="quiet">with ${spelled(write(Object.fromEntries(Object.entries(statement.params).map(([name, value]) => [name, typeof value === 'string' && value.length > 80 ? `${value.slice(0, 80)}…` : value]))))}</p></details>`;
}

// Esc closes, and what was typed is there when the row is opened again; Cancel means to lose it.
export function Row({ project, table, rowKey, onClose, onDone }) {
  const isNew = !rowKey;
  const draft = `${project}:row:${table.name}:${isNew ? 'new' : write(rowKey)}`;
  const [old, setOld] = useState(undefined);
  const [fields, setFields] = useState(isNew ? (readDraft(draft) ?? begin(table)) : null);
  const [isStale, setStale] = useState(false);
  const [isEnding, end] = useState(false);
  const [failed, fail] = useState(undefined);
  const may = useMay()('editor');
  const read = async (keep) => {
    const answer = await call('query_backend', { project, body: { ...selectRow(table, rowKey), read_only: true } });
    const [row] = answer.rows;
    if (!row) throw refuse('The row is not there any more');
    const values = table.columns.map((_, at) => row[`c${at}`]);
    setOld(values);
    if (!keep) setFields(readDraft(draft) ?? begin(table, values));
  };
  useEffect(() => {
    if (!isNew) read(false).catch((error) => fail(asProblem(error)));
  }, []);
  const change = (at, next) => {
    const all = fields.map((field, place) => (place === at ? next : field));
    setFields(all);
    keepDraft(draft, all);
  };
  const { changes, errors } = fields && (isNew || old) ? changesOf(table, old, fields) : { changes: new Map(), errors: {} };
  let statement, tooLarge;
  try {
    statement = changes.size || isNew ? (isNew ? insertRow(table, changes) : updateRow(table, rowKey, old, changes)) : undefined;
  } catch (error) {
    tooLarge = error.message;
  }
  const leave = () => {
    dropDraft(draft);
    onClose();
  };
  const save = useRun(async () => {
    if (Object.keys(errors).length) throw refuse('A field has a value that its type does not take');
    if (tooLarge) throw refuse('The change is too large', tooLarge);
    if (!statement) return leave();
    const answer = await call('query_backend', { project, body: statement });
    if (!isNew && answer.rows_affected === 0) {
      await read(true);
      setStale(true);
      return undefined;
    }
    await onDone();
    say(isNew ? 'Inserted the row.' : 'Saved the row.');
    leave();
    return undefined;
  });
  const remove = async () => {
    const answer = await call('query_backend', { project, body: deleteRow(table, rowKey, old) });
    if (answer.rows_affected === 0) {
      await read(true);
      throw refuse('Somebody has changed the row meanwhile', 'Nothing was deleted. Look at it again.');
    }
    await onDone();
    say('Deleted the row.');
    leave();
  };
  const broken = columnOf(table, save.problem);
  const types = isNew ? ['default', 'auto', 'text', 'integer', 'real', 'blob', 'null'] : ['auto', 'text', 'integer', 'real', 'blob', 'null'];
  return html`<${Dialog} title="Row" onClose=${onClose} wide>
    <${Fault} of=${failed} />
    ${fields && (isNew || old)
      ? html`<${Form} onSubmit=${save.run}>
        ${isStale && html`<div class="banner" role="alert" data-code="row_changed"><p>Somebody has changed this row since you opened it, and nothing was saved. Your values are still in the fields; saving again puts them over the row as it is now.</p></div>`}
        <${Parameters}>${table.columns.map((column, at) => html`<${ValueField} key=${at} name=${column.name} value=${fields[at]} types=${types} needs="editor" onChange=${(next) => change(at, next)}
          error=${errors[at] ?? (broken === at ? save.problem.detail : '')}
          hint=${[column.type || 'any type', column.primary_key && 'key', column.not_null && 'not NULL', column.default !== null && `default ${column.default}`].filter(Boolean).join(', ')} />`)}</${Parameters}>
        ${tooLarge && html`<p class="banner">${tooLarge}</p>`}
        ${statement && html`<${Shown} statement=${statement} />`}
        <${Fault} of=${save.problem} />
        <div class="actions">${!isNew && html`<${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete row</${Button}>`}<span class="push"></span><${Button} onClick=${leave}>Cancel</${Button}><${Button} type="submit" class="main" needs="editor" busy=${save.busy} off=${may && !isNew && !changes.size && !Object.keys(errors).length} why="Nothing is changed yet.">Save row</${Button}></div>
      </${Form}>`
      : html`${!failed && html`<p class="waiting">Loading…</p>`}<div class="actions"><${Button} onClick=${onClose}>Cancel</${Button}></div>`}
  </${Dialog}>
  ${isEnding && html`<${Ask} title="Delete row" onClose=${() => end(false)} work=${remove}><p>The row goes from <strong>${spelled(table.name)}</strong>. History can bring the whole database back to before it.</p></${Ask}>`}`;
}

