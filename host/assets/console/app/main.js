// The frame of all screens: routes, navigations, and what holds wherever the reader is.
import { render } from 'preact';
import { useEffect, useErrorBoundary, useLayoutEffect, useState } from 'preact/hooks';
import { effect, signal } from '@preact/signals';
import { findSession, isAtLeast, keepReturn, notice, roleIn, session, signOut, who } from 'app/session.js';
import { address, arriving, go, isBusy, asProblem, forgetAnswers, fetchProject, known, useLoad } from 'app/load.js';
import { Button, Fault, Role, Screen, Text, html, message, spelled, whyNot } from 'app/ui.js';

// Address, module, the component of it, and what it is told. `lean` screens need all three requests themselves.
const routes = [
  ['/', 'projects', 'Projects'],
  ['/login', 'login', 'SignIn', { open: true }],
  ['/callback', 'login', 'Callback', { open: true }],
  ['/new', 'create', 'NewProject'],
  ['/w/new', 'create', 'NewWorkspace'],
  ['/p/:project', 'overview', 'Overview'],
  ['/p/:project/pages', 'pages', 'Pages'],
  ['/p/:project/pages/:page', 'page', 'Page', { lean: true }],
  ['/p/:project/pages/:page/:revision', 'revision', 'Revision', { lean: true }],
  ['/p/:project/data', 'data', 'Data'],
  ['/p/:project/sql', 'sql', 'Sql'],
  ['/p/:project/schema', 'schema', 'Schema'],
  ['/p/:project/actions', 'actions', 'Actions'],
  ['/p/:project/actions/:action', 'action', 'Action'],
  ['/p/:project/history', 'history', 'History'],
  ['/p/:project/rooms', 'rooms', 'Rooms'],
  ['/p/:project/visitors', 'visitors', 'Visitors'],
  ['/p/:project/files', 'files', 'Files'],
  ['/p/:project/payments', 'payments', 'Payments'],
  ['/p/:project/agents', 'agents', 'Agents'],
  ['/p/:project/domains', 'domains', 'Domains'],
  ['/p/:project/statistics', 'statistics', 'Statistics'],
  ['/p/:project/log', 'log', 'Log'],
  ['/p/:project/settings', 'settings', 'Settings'],
  ['/w/:workspace/members', 'members', 'Members'],
  ['/w/:workspace/keys', 'keys', 'Keys'],
  ['/w/:workspace/audit', 'audit', 'Audit'],
  ['/w/:workspace/plan', 'plan', 'Plan'],
  ['/w/:workspace/settings', 'workspace', 'WorkspaceSettings'],
].map(([path, module, component, more]) => ({ names: path.split('/').slice(1), module, component, ...more }));

const projectScreens = ['Overview', 'Pages', 'Data', 'SQL', 'Schema', 'Actions', 'History', 'Rooms', 'Visitors', 'Files', 'Payments', 'Agents', 'Domains', 'Statistics', 'Log', 'Settings'];
const workspaceScreens = ['Members', 'Keys', 'Audit', 'Plan', 'Settings'];

function match(path) {
  const parts = path.replace(/(.)\/$/, '$1').split('/').slice(1);
  for (const route of routes) {
    if (route.names.length !== parts.length) continue;
    const params = {};
    const fits = route.names.every((name, at) => {
      if (!name.startsWith(':')) return name === parts[at];
      try {
        params[name.slice(1)] = decodeURIComponent(parts[at]);
      } catch {
        return false;
      }
      return parts[at] !== '';
    });
    if (fits) return { route, params };
  }
  return { route: { component: 'Nowhere', open: true }, params: {} };
}

const current = signal(null);
function Nowhere() {
  return html`<${Screen} title="Nothing is here"><p>The address is wrong, or what was here is gone. <a href="/">Projects</a> has what is there.</p></${Screen}>`;
}

// Follows the address; what arrives late is dropped.
async function follow({ path, search, hash }) {
  const { route, params } = match(path);
  if (!route.open && !session.peek()) {
    keepReturn(path + search + hash);
    go('/login', { replace: true });
    return;
  }
  const module = route.module ? await import(`app/screens/${route.module}.js`).catch((error) => ({ failed: asProblem(error) })) : { Nowhere };
  if (address.peek().path !== path || address.peek().search !== search) return;
  const query = new URLSearchParams(search);
  current.value = { route, params, query, Component: module[route.component], failed: module.failed, key: path + search };
}

// The project that the reader is in: its name, and the workspace that says the role. A list of projects has told both.
function useProject(id, isLean) {
  const has = id && known(`known:${id}`);
  const isRoleKnown = roleIn(undefined) !== undefined;
  const load = useLoad(id && !has && !(isLean && isRoleKnown) ? `project:${id}` : null, () => fetchProject(id));
  return { project: (id && known(`known:${id}`)) || load.value, problem: load.problem };
}

function Menu({ name, children }) {
  const [isOpen, open] = useState(false);
  const { path, search } = address.value;
  useEffect(() => open(false), [path, search]);
  const escape = (event) => {
    if (event.key !== 'Escape' || !isOpen) return;
    open(false);
    event.currentTarget.querySelector('button').focus();
  };
  return html`<div class=${`menu ${isOpen ? 'open' : ''}`} onKeyDown=${escape}>
    <button type="button" class="opener" aria-expanded=${String(isOpen)} onClick=${() => open(!isOpen)}>${name}</button>
    <nav aria-label=${name}>${children}</nav>
  </div>`;
}

function Links({ base, names, path }) {
  return html`<ul>${names.map((name) => {
    const to = name === 'Overview' ? base : `${base}/${name.toLowerCase()}`;
    const isHere = path === to || (name !== 'Overview' && path.startsWith(`${to}/`));
    return html`<li key=${name}><a href=${to} aria-current=${path === to ? 'page' : isHere ? 'true' : undefined}>${name}</a></li>`;
  })}</ul>`;
}

function Account() {
  if (!session.value) return null;
  return html`<${Menu} name="Account"><div class="account"><span class="who"><${Text} of=${who.value} /></span><${Button} class="small" onClick=${signOut}>Sign out</${Button}></div></${Menu}>`;
}

function Body({ shown, project, problem }) {
  const [error] = useErrorBoundary();
  useLayoutEffect(() => {
    arriving.value = false;
  }, []);
  const failed = shown.failed ?? (error && asProblem(error)) ?? problem;
  if (failed) return html`<${Screen} title="This screen cannot be shown"><${Fault} of=${failed} /><p><a href="/">Back to the projects</a></p></${Screen}>`;
  return html`<${shown.Component} ...${shown.params} query=${shown.query} about=${project?.name} ...${project && { workspace: project.workspace.slug }} />`;
}

function Shell() {
  const shown = current.value;
  const { project: id, workspace } = shown?.params ?? {};
  const { project, problem } = useProject(id, shown?.route.lean);
  const [isFinding, find] = useState(null);
  const isOffline = useOffline();
  const role = id ? roleIn(project?.workspace.id) : workspace ? roleIn(workspace) : roleIn(undefined);
  const { path } = address.value;
  useEffect(() => {
    const open = async (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || !session.peek()) return;
      event.preventDefault();
      find({ ...(await import('app/screens/goto.js')) });
    };
    addEventListener('keydown', open, true);
    return () => removeEventListener('keydown', open, true);
  }, []);
  const search = async () => find({ ...(await import('app/screens/goto.js')) });
  const side = id ? 'Project' : workspace ? 'Workspace' : undefined;
  return html`<${Role.Provider} value=${role}>
    <a class="skip" href="#main">Skip to the content</a>
    <header class="bar">
      <a class="home" href="/" aria-label="Projects"><svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="7" fill="currentColor" /><path d="M16 23V10m-6 6 6-6 6 6" fill="none" stroke="var(--bg)" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" /></svg><span>Projects</span></a>
      ${id && html`<span class="where"><${Text} of=${project?.name ?? ''} /></span>`}
      ${workspace && html`<span class="where"><${Text} of=${workspace} /></span>`}
      ${session.value && html`<${Button} class="small find" aria-keyshortcuts="Control+K Meta+K" onClick=${search}>Search<kbd aria-hidden="true">Ctrl K</kbd></${Button}>`}
      <${Account} />
    </header>
    <div class="body">
      ${side && session.value && html`<aside class="side"><${Menu} name=${side}>${id
        ? html`<${Links} base=${`/p/${id}`} names=${projectScreens} path=${path} />${project && html`<ul class="up"><li><a href=${`/w/${project.workspace.slug}/members`}>Workspace <${Text} of=${project.workspace.slug} /></a></li></ul>`}`
        : html`<${Links} base=${`/w/${workspace}`} names=${workspaceScreens} path=${path} />`}</${Menu}></aside>`}
      <main id="main" aria-busy=${String(isBusy.value)}>
        ${isOffline && html`<p class="banner">There is no connection. What you type stays here.</p>`}
        ${id && role && !isAtLeast(role, 'editor') && html`<p class="banner">You see this as a ${role}. ${whyNot('editor').replace('this', 'what changes something')}</p>`}
        ${shown && html`<${Body} key=${shown.key} shown=${shown} project=${project} problem=${problem} />`}
      </main>
    </div>
    <div class="messages" role="status" aria-label="Messages">${message.value && html`<p>${spelled(message.value)}</p>`}</div>
    ${isFinding && html`<${isFinding.GoTo} project=${project} onClose=${() => find(null)} />`}
  </${Role.Provider}>`;
}

function useOffline() {
  const [isOffline, set] = useState(!navigator.onLine);
  useEffect(() => {
    const look = () => set(!navigator.onLine);
    addEventListener('online', look);
    addEventListener('offline', look);
    return () => (removeEventListener('online', look), removeEventListener('offline', look));
  }, []);
  return isOffline;
}

await findSession();
const place = document.getElementById('console');
place.replaceChildren();
render(html`<${Shell} />`, place);
effect(() => {
  message.value = '';
  follow(address.value);
});
// Whoever is signed out leaves the screen, and comes back to it.
let had = Boolean(session.peek());
effect(() => {
  const has = Boolean(session.value);
  if (had && !has) {
    forgetAnswers();
    const { path, search } = address.peek();
    if (!match(path).route.open) {
      if (notice.peek()) keepReturn(path + search);
      go('/login', { replace: true });
    }
  }
  had = has;
});
