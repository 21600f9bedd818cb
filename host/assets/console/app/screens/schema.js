// The schema: what there is, how it came to be, and what a migration would make of it.
import { useRef, useState } from 'preact/hooks';
import { call, newKey } from 'app/api.js';
import { Editor } from 'app/editor.js';
import { useBackend } from 'app/project.js';
import { completions } from 'app/screens/sql.js';
import { known, remember, useDraft, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Loaded, Screen, Table, Text, Time, count, html, save, say, spelled } from 'app/ui.js';

const example = `CREATE TABLE notes (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);`;

function Columns({ table, indexes }) {
  const rows = table.columns.map((column) => html`<tr key=${column.name}><th scope="row"><${Text} of=${column.name} /></th><td><code>${column.type || '–'}</code></td><td>${column.primary_key ? 'key' : ''}</td><td>${column.not_null ? 'not NULL' : ''}</td><td><code>${column.default ?? ''}</code></td></tr>`);
  const own = indexes.filter((index) => index.table === table.name);
  return html`<section><h3><${Text} of=${table.name} /></h3><${Table} caption=${`Columns of ${spelled(table.name)}`} columns=${['Column', 'Type', 'Key', 'NULL', 'Default']} rows=${rows} />
    ${own.length > 0 && html`<p class="quiet">Indexes: ${own.map((index, at) => html`${at > 0 && ', '}<code>${index.name}</code> on ${index.columns.map((name) => name ?? 'an expression').join(', ')}${index.unique ? ' (unique)' : ''}`)}</p>`}</section>`;
}

function Changes({ tried }) {
  const { changes, broken_actions: broken, status } = tried;
  const parts = [
    ...changes.tables.map((table) => html`<li>${table.new ? 'New table' : 'New columns of'} <strong><${Text} of=${table.name} /></strong>: ${table.columns.map((column) => `${column.name} ${column.type}`.trim()).join(', ')}</li>`),
    ...changes.indexes.map((index) => html`<li>New index <strong>${index.name}</strong> on ${index.table}</li>`),
    ...changes.views.map((view) => html`<li>New view <strong>${view.name}</strong></li>`),
  ];
  return html`<div role="region" aria-label="Changes" class="card"><h3>What it would do</h3>
    ${status === 'already_applied' && html`<p>This very script was applied before: nothing would change.</p>`}
    ${parts.length ? html`<ul>${parts}</ul>` : status !== 'already_applied' && html`<p>The schema stays as it is; rows may be added.</p>`}
    ${broken.length
      ? html`<div class="fault"><p><strong>${count(broken.length, 'action')} would not work any more</strong></p><ul>${broken.map((one) => html`<li key=${one.name}><code>${one.name}</code>: <${Text} of=${one.detail} /></li>`)}</ul></div>`
      : html`<p class="good">Every action works on.</p>`}
    ${tried.warnings?.length > 0 && html`<ul class="banner">${tried.warnings.map((one, at) => html`<li key=${at}><${Text} of=${one.detail} /></li>`)}</ul>`}
  </div>`;
}

function Migrate({ project, backend, onDone }) {
  const [ddl, setDdl, dropDdl] = useDraft(`${project}:migration`, '');
  const [note, setNote, dropNote] = useDraft(`${project}:migration:note`);
  const [tried, setTried] = useState(null);
  const attempt = useRun(async () => {
    setTried(null);
    const answer = await call('update_backend', { project, query: { dry_run: true }, body: { ddl } });
    setTried({ ddl, answer });
    say('Tried it on a copy. Nothing is changed yet.');
  });
  const apply = useRun(async () => {
    const answer = await call('update_backend', { project, body: { ddl: tried.ddl, note: note || undefined } });
    dropDdl();
    dropNote();
    setTried(null);
    await onDone();
    say({ applied: `Applied migration ${answer.version}.`, already_applied: `It was applied before, as migration ${answer.version}.`, healed: `Recorded migration ${answer.version}.` }[answer.status]);
  });
  const isTried = tried?.ddl === ddl;
  const problem = apply.problem ?? attempt.problem;
  return html`<section class="card"><h2>New migration</h2><p class="quiet">It only ever adds: tables, columns, indexes, views, and rows to begin with. Try it on a copy before you mean it.</p>
    <${Editor} label="Migration" value=${ddl} onChange=${setDdl} onRun=${attempt.run} kind="sql" schema=${completions(backend)} needs="editor" fault=${problem?.position} placeholder="ALTER TABLE notes ADD COLUMN likes INTEGER NOT NULL DEFAULT 0" hint="Ctrl+Enter tries it." />
    <${Field} label="Note" value=${note} onInput=${setNote} maxlength="1000" needs="editor" autocomplete="off" hint="Why; kept beside the script." />
    <${Fault} of=${problem} />
    ${isTried && html`<${Changes} tried=${tried.answer} />`}
    <div class="actions"><${Button} needs="editor" busy=${attempt.busy} off=${!ddl.trim()} why="Write a migration first." onClick=${attempt.run}>Try</${Button}><${Button} class="main" needs="editor" busy=${apply.busy} off=${!isTried} why="Try this text first." onClick=${apply.run}>Apply</${Button}></div></section>`;
}

function Create({ project, onDone }) {
  const [ddl, setDdl, dropDdl] = useDraft(`${project}:ddl`, example);
  const sent = useRef({});
  const create = useRun(async () => {
    if (sent.current.ddl !== ddl) sent.current = { ddl, key: newKey() };
    const backend = await call('create_backend', { project, body: { ddl }, key: sent.current.key });
    remember(`known:${project}`, { ...known(`known:${project}`), backend: { id: backend.id } });
    dropDdl();
    await onDone();
    say('Made the database.');
  });
  return html`<section class="card"><h2>This project has no database yet</h2><p>Say which tables it begins with. At a shell, <code>svc backend create FILE.sql</code> does the same; an agent has <code>manage_backend</code> <code>create</code>.</p>
    <${Editor} label="Migration" value=${ddl} onChange=${setDdl} kind="sql" needs="editor" fault=${create.problem?.position} />
    <${Fault} of=${create.problem} />
    <div class="actions"><${Button} class="main" needs="editor" busy=${create.busy} onClick=${create.run}>Create database</${Button}></div></section>`;
}

function Ledger({ migrations }) {
  const rows = [...migrations].reverse().map((one) => html`<tr key=${one.version}><th scope="row">${one.version}</th><td><${Time} at=${one.applied_at} /></td><td><${Text} of=${one.note ?? ''} /></td><td><details><summary>Script ${one.version}</summary><pre tabindex="0">${spelled(one.sql)}</pre></details></td></tr>`);
  return html`<section><h2>Migrations</h2><${Table} caption="Migrations" columns=${['Version', 'Applied', 'Note', 'Script']} rows=${rows} empty=${html`<p>None.</p>`} /></section>`;
}

export function Schema({ project, about }) {
  const backend = useBackend(project);
  const [isEnding, end] = useState(false);
  const value = backend.value;
  const take = useRun(async () => {
    const answer = await call('export_backend', { project });
    const name = /filename="?([^";]+)/.exec(answer.headers.get('Content-Disposition') ?? '')?.[1] ?? 'database.db';
    save(await answer.blob(), name, 'application/vnd.sqlite3');
    say('Exported the database as one SQLite file.');
  });
  const actions = value && html`<${Button} busy=${take.busy} onClick=${take.run}>Export</${Button}><${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete database</${Button}>`;
  return html`<${Screen} title="Schema" about=${about} actions=${actions}>
    <${Fault} of=${take.problem} />
    <${Loaded} load=${backend}>${() =>
      value
        ? html`${value.warnings.map((one, at) => html`<p class="banner" key=${at}><code>${one.code}</code> <${Text} of=${one.detail} />${one.code === 'schema_ahead_of_ledger' ? ' Paste the script below, try it, and apply it: Send again records it.' : ''}</p>`)}
          <${Migrate} project=${project} backend=${value} onDone=${backend.reload} />
          <h2>Tables</h2><div class="columns">${value.schema.tables.map((table) => html`<${Columns} key=${table.name} table=${table} indexes=${value.schema.indexes} />`)}</div>
          ${value.schema.views.length > 0 && html`<section><h2>Views</h2><ul>${value.schema.views.map((view) => html`<li key=${view.name}><a href=${`/p/${project}/data?table=${encodeURIComponent(view.name)}`}><${Text} of=${view.name} /></a></li>`)}</ul></section>`}
          <${Ledger} migrations=${value.migrations} />`
        : html`<${Create} project=${project} onDone=${backend.reload} />`}</${Loaded}>
    ${isEnding && html`<${Ask} title="Delete database" onClose=${() => end(false)} work=${async () => {
      await call('delete_backend', { project });
      remember(`known:${project}`, { ...known(`known:${project}`), backend: null });
      say('Deleted the database.');
      await backend.reload();
    }}><p>All tables, rows, actions and the history go at once, and cannot be had back. Export first what you may need.</p><p>Pages stay; what they call is a 404 then.</p></${Ask}>`}
  </${Screen}>`;
}
