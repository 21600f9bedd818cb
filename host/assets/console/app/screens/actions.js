// What visitors may call: the list, and a new one.
import { call } from 'app/api.js';
import { hasBackend, NoDatabase } from 'app/project.js';
import { Define } from 'app/define.js';
import { go, useDraft, useLoad } from 'app/load.js';
import { Field, Loaded, Screen, Table, Text, html, say } from 'app/ui.js';

/** Loads the actions with their columns; null where there is no database. */
export async function loadActions(project) {
  return (await hasBackend(project)) ? (await call('list_actions', { project })).actions : null;
}

function List({ project, actions, as }) {
  const rows = actions.map((action) => html`<tr key=${action.name}><th scope="row"><a href=${`/p/${project}/actions/${action.name}${as ? `?as=${encodeURIComponent(as)}` : ''}`}>${action.name}</a></th>
    <td>${action.kind === 'write' ? html`<span class="tag new">writes</span>` : html`<span class="tag">reads</span>`}</td><td>${action.requires_identity ? 'signed in' : 'anybody'}</td>
    <td>${action.params.map((name) => html`<code key=${name}>:${name}</code> `)}</td><td class="number">${action.version}</td><td><${Text} of=${action.note ?? ''} />${action.columns === null ? html` <span class="tag bad">does not work now</span>` : ''}</td></tr>`);
  return html`<${Table} caption="Actions" columns=${['Action', 'Kind', 'For', 'Parameters', 'Version', 'Note']} numbers=${[4]} rows=${rows} empty=${html`<h2>No action yet</h2><p>Visitors reach the database through actions alone. Define the first one below, with <code>svc action define FILE.sql</code>, or have an agent do it.</p>`} />`;
}

function New({ project, onDone }) {
  const [name, setName, dropName] = useDraft(`${project}:action:name`);
  const done = async (made) => {
    dropName();
    await onDone();
    go(`/p/${project}/actions/${made.name}`);
    say(`Defined ${made.name}.`);
  };
  return html`<section class="card"><h2>A new action</h2>
    <${Field} label="Name" value=${name} onInput=${setName} needs="editor" autocomplete="off" maxlength="64" hint="By which pages call it: a-z, 0-9 and _." />
    <${Define} project=${project} name=${name} version=${0} isNameFree onDone=${done} /></section>`;
}

export function Actions({ project, query, about }) {
  const actions = useLoad(`actions:${project}`, () => loadActions(project));
  return html`<${Screen} title="Actions" about=${about} lead="Statements with names, which pages call as svc.db.op(name, params).">
    <${Loaded} load=${actions}>${(all) => (all ? html`<${List} project=${project} actions=${all} as=${query.get('as')} /><${New} project=${project} onDone=${actions.reload} />` : html`<${NoDatabase} project=${project}>What visitors may do with it has a name here.</${NoDatabase}>`)}</${Loaded}>
  </${Screen}>`;
}

