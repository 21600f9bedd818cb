// A field that leads anywhere: projects, and the pages, tables and actions of the one that the reader is in.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { session } from 'app/session.js';
import { loadBackend } from 'app/project.js';
import { go, asProblem, known, remember } from 'app/load.js';
import { Dialog, Fault, Text, html } from 'app/ui.js';

const parts = ['Pages', 'Data', 'SQL', 'Schema', 'Actions', 'History', 'Rooms', 'Visitors', 'Files', 'Payments', 'Agents', 'Domains', 'Statistics', 'Log', 'Settings'];

async function find(project) {
  const [projects, pages, backend] = await Promise.all([
    call('list_projects').then((answer) => answer.projects),
    project ? call('list_frontends', { project: project.id }).then((answer) => answer.frontends) : [],
    project ? (known(`backend:${project.id}`) ?? loadBackend(project.id)) : null,
  ]);
  for (const one of projects) remember(`known:${one.id}`, one);
  const base = project && `/p/${project.id}`;
  return [
    ...(project ? parts.map((name) => ({ kind: 'screen', name, to: `${base}/${name.toLowerCase()}` })) : []),
    ...pages.map((page) => ({ kind: 'page', name: page.title, more: `/${page.slug}`, to: `${base}/pages/${page.slug}` })),
    ...(backend?.schema.tables ?? []).map((table) => ({ kind: 'table', name: table.name, to: `${base}/data?table=${encodeURIComponent(table.name)}` })),
    ...(backend?.actions ?? []).map((action) => ({ kind: 'action', name: action.name, to: `${base}/actions/${action.name}` })),
    ...projects.map((one) => ({ kind: 'project', name: one.name, more: one.workspace.slug, to: `/p/${one.id}` })),
    ...(session.value?.me.memberships ?? []).map((one) => ({ kind: 'workspace', name: one.workspace.slug, to: `/w/${one.workspace.slug}/members` })),
    { kind: 'screen', name: 'New project', to: '/new' },
  ];
}

const most = 30;
const fits = (entry, words) => words.every((word) => `${entry.kind} ${entry.name} ${entry.more ?? ''}`.toLowerCase().includes(word));

export function GoTo({ project, onClose }) {
  const [all, setAll] = useState([]);
  const [text, setText] = useState('');
  const [at, move] = useState(0);
  const [problem, fail] = useState(undefined);
  const field = useRef(null);
  const id = useId();
  useEffect(() => {
    field.current.focus();
    find(project).then(setAll, (error) => fail(asProblem(error)));
  }, []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((entry) => fits(entry, words)).slice(0, most);
  const chosen = Math.min(at, found.length - 1);
  const take = (entry) => {
    if (!entry) return;
    onClose();
    go(entry.to);
  };
  const keys = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && found.length) move((chosen + by + found.length) % found.length);
    else if (event.key === 'Enter') take(found[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return html`<${Dialog} title="Go to" onClose=${onClose}>
    <input ref=${field} class="goto" role="combobox" aria-label="Go to" aria-expanded=${String(found.length > 0)} aria-controls=${`${id}-list`} aria-autocomplete="list" aria-activedescendant=${found.length ? `${id}-${chosen}` : undefined} autocomplete="off" spellcheck=${false} value=${text} onInput=${(event) => (setText(event.currentTarget.value), move(0))} onKeyDown=${keys} placeholder="A project, page, table or action" />
    <${Fault} of=${problem} />
    <ul role="listbox" id=${`${id}-list`} aria-label="Places" class="found">${found.map((entry, place) => html`<li key=${entry.to + entry.kind} id=${`${id}-${place}`} role="option" aria-selected=${String(place === chosen)} onClick=${() => take(entry)}><span class="kind">${entry.kind}</span><span><${Text} of=${entry.name} /></span>${entry.more && html`<span class="quiet"><${Text} of=${entry.more} /></span>`}</li>`)}</ul>
    ${!found.length && all.length > 0 && html`<p class="quiet">Nothing fits.</p>`}
  </${Dialog}>`;
}

