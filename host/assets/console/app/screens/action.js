// One action: its statement, a call of it as somebody, and its versions.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { NoDatabase } from 'app/project.js';
import { Define } from 'app/define.js';
import { Result } from 'app/result.js';
import { write } from 'app/exact.js';
import { asTyped, typeOf } from 'app/values.js';
import { loadActions } from 'app/screens/actions.js';
import { Binds, own, readBinds } from 'app/screens/sql.js';
import { go, useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Screen, Table, Text, Time, html, options, say, spelled, useMay } from 'app/ui.js';

async function load(project, name) {
  const [actions, people] = await Promise.all([loadActions(project), call('list_visitors', { project, query: { limit: 50 } })]);
  return { hasDatabase: actions !== null, action: actions?.find((one) => one.name === name), visitors: people.visitors };
}

function Call({ project, action, visitors, first }) {
  const place = `${project}:call:${action.name}`;
  const [fields, setFields] = useDraft(place, {});
  const [as, setAs] = useState(first ?? (action.requires_identity ? 'test' : ''));
  const [userId, setUserId] = useDraft(`${place}:user`, 'usr_test');
  const [email, setEmail] = useDraft(`${place}:email`, '');
  const [errors, setErrors] = useState({});
  const [shown, show] = useState(null);
  const hints = Object.fromEntries(Object.entries(action.defaults).map(([name, value]) => [name, { value: { type: 'default', text: asTyped(value), natural: typeOf(value) }, text: `${write(value)}, if it is left out` }]));
  const run = useRun(async () => {
    const given = action.params.filter((name) => (own(fields, name) ?? own(hints, name)?.value)?.type !== 'default');
    const read = readBinds(given, fields);
    setErrors(read.errors);
    if (Object.keys(read.errors).length) return;
    const visitor = visitors.find((one) => one.id === as) ?? { id: as };
    const by = as === 'test' ? { user_id: userId, email: email || undefined } : as && { user_id: visitor.id, email: visitor.email ?? undefined, name: visitor.name ?? undefined };
    const began = performance.now();
    const { results } = await call('call_actions', { project, body: { ops: [{ action: action.name, params: read.params }], as: by || undefined } });
    show({ result: results[0], took: Math.round(performance.now() - began), at: Date.now() });
  });
  const who = [['', 'Nobody'], ['test', 'A test id'], ...visitors.map((one) => [one.id, spelled(one.name ?? one.email ?? one.id)])];
  // A link of the visitors' screen may name one who is not among the newest.
  if (!who.some(([id]) => id === as)) who.push([as, as]);
  const mismatch = run.problem?.code === 'params_mismatch' ? Object.fromEntries([...(run.problem.missing ?? []), ...(run.problem.extra ?? [])].map((name) => [name, 'The statement and the call do not agree about this one.'])) : {};
  return html`<section class="card"><h2>Call it</h2>
    ${action.kind === 'write' && html`<p class="quiet">It writes, and the rows are real.</p>`}
    <${Form} onSubmit=${run.run}>
      <${Field} label="Call as" as="select" value=${as} onInput=${setAs} needs="editor">${options(who)}</${Field}>
      ${as === 'test' && html`<div class="pair"><${Field} label="User id" value=${userId} onInput=${setUserId} required needs="editor" /><${Field} label="E-mail" value=${email} onInput=${setEmail} needs="editor" /></div>`}
      <${Binds} names=${action.params} fields=${fields} onChange=${setFields} errors=${{ ...mismatch, ...errors }} hints=${hints} more=${Object.keys(hints).length ? ['default'] : []} needs="editor" />
      <${Fault} of=${run.problem} />
      <div class="actions"><${Button} type="submit" needs="editor" busy=${run.busy}>Call</${Button}></div>
    </${Form}>
    ${shown && html`<${Result} key=${shown.at} result=${shown.result} took=${shown.took} name=${action.name} mayDownload=${false} />`}</section>`;
}

function Versions({ project, action, onDone }) {
  const [seen, see] = useState(null);
  const list = useRun(async (cursor) => {
    const page = await call('list_action_versions', { project, action: action.name, query: { cursor } });
    see({ versions: [...(cursor ? seen.versions : []), ...page.versions], cursor: page.next_cursor });
  });
  const back = useRun(async (version) => {
    const made = await call('rollback_action', { project, action: action.name, body: { version, expected_version: action.version } });
    see(null);
    await onDone();
    say(`Version ${version} is back, as version ${made.version}.`);
  });
  const rows = seen?.versions.map((one) => html`<tr key=${one.version}><th scope="row">${one.version}</th><td><${Time} at=${one.created_at} /></td><td><${Text} of=${one.note ?? ''} /></td><td><details><summary>Statement ${one.version}</summary><pre tabindex="0">${spelled(one.sql)}</pre></details></td>
    <td>${one.version !== action.version && html`<${Button} class="small" needs="editor" busy=${back.busy} onClick=${() => back.run(one.version)}>Bring back</${Button}>`}</td></tr>`);
  return html`<section><h2>Versions</h2><${Fault} of=${back.problem ?? list.problem} />
    ${seen ? html`<${Table} caption="Versions" columns=${['Version', 'Made', 'Note', 'Statement', html`<span class="hidden">Actions</span>`]} rows=${rows} />${seen.cursor && html`<div class="actions"><${Button} busy=${list.busy} onClick=${() => list.run(seen.cursor)}>Older</${Button}></div>`}` : html`<div class="actions"><${Button} busy=${list.busy} onClick=${() => list.run()}>Show versions</${Button}></div>`}</section>`;
}

export function Action({ project, action: name, query, about }) {
  const all = useLoad(`action:${project}:${name}`, () => load(project, name));
  const [isEnding, end] = useState(false);
  const may = useMay()('editor');
  const { action, visitors } = all.value ?? {};
  const defined = async (made) => {
    await all.reload();
    say(`Defined version ${made.version}.`);
  };
  const lead = action && html`<a href=${`/p/${project}/actions`}>All actions</a> · ${action.kind === 'write' ? 'writes' : 'reads'} · version ${action.version} · for ${action.requires_identity ? 'who is signed in' : 'anybody'}`;
  return html`<${Screen} title=${name} about=${about} lead=${lead} actions=${action && html`<${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete action</${Button}>`}>
    <${Fault} of=${all.problem} />
    ${all.value && !all.value.hasDatabase && html`<${NoDatabase} project=${project}>What visitors may do with it has a name here.</${NoDatabase}>`}
    ${all.value?.hasDatabase && !action && html`<p class="banner">There is no action of this name yet: define it here, or <a href=${`/p/${project}/actions`}>see those that there are</a>.</p>
      <${Define} key="new" project=${project} name=${name} version=${0} onDone=${defined} />`}
    ${action && html`
      ${action.columns === null && html`<p class="banner">The statement does not work with the schema as it is.</p>`}
      <${Define} key=${action.version} project=${project} name=${name} action=${action} version=${action.version} onDone=${defined} />
      <${Call} key=${`call${action.version}`} project=${project} action=${action} visitors=${visitors} first=${query.get('as') ?? undefined} />
      ${!may && html`<p class="quiet">An editor may call it.</p>`}
      <${Versions} key=${`versions${action.version}`} project=${project} action=${action} onDone=${all.reload} />`}
    ${isEnding && html`<${Ask} title="Delete action" onClose=${() => end(false)} work=${async () => {
      await call('delete_action', { project, action: name, query: { expected_version: action.version } });
      go(`/p/${project}/actions`);
      say(`Deleted ${name}.`);
    }}><p>Pages that call <code>${name}</code> get a 404 from now on, and its versions go with it.</p></${Ask}>`}
  </${Screen}>`;
}
