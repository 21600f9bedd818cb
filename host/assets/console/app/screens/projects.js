// All projects that the caller sees, by workspace.
import { call } from 'app/api.js';
import { session, takeWorkspaces } from 'app/session.js';
import { remember, useLoad } from 'app/load.js';
import { Button, Lines, Loaded, Screen, Table, Text, Time, copy, count, html } from 'app/ui.js';

async function load() {
  const [workspaces, projects] = await Promise.all([call('list_workspaces'), call('list_projects')]);
  takeWorkspaces(workspaces.workspaces);
  for (const project of projects.projects) remember(`known:${project.id}`, project);
  return { workspaces: workspaces.workspaces, projects: projects.projects };
}

const columns = ['Project', 'Address', 'Database', 'Made', 'Ends'];

function Group({ workspace, projects }) {
  const rows = projects.map(
    (project) => html`<tr key=${project.id}>
      <th scope="row"><a href=${`/p/${project.id}`}><${Text} of=${project.name} /></a></th>
      <td><a href=${project.url} target="_blank" rel="noopener noreferrer"><${Text} of=${project.url.replace(/^https?:\/\//, '')} /></a></td>
      <td>${project.backend ? 'Yes' : '–'}</td>
      <td><${Time} at=${project.created_at} /></td>
      <td>${project.expires_at ? html`<${Time} at=${project.expires_at} />` : 'For good'}</td>
    </tr>`,
  );
  return html`<section class="group">
    <div class="over"><h2><${Text} of=${workspace.display_name || workspace.slug} /></h2>
      <p class="quiet">${workspace.plan} plan · ${workspace.role === 'machine' ? 'editor' : workspace.role} · ${count(workspace.project_count, 'project')} · <a href=${`/w/${workspace.slug}/members`}>Workspace <${Text} of=${workspace.slug} /></a></p></div>
    ${rows.length ? html`<${Table} caption=${`Projects of ${workspace.slug}`} columns=${columns} rows=${rows} />` : html`<${Beginning} />`}
  </section>`;
}

const shell = 'svc init --template guest-book guest-book\ncd guest-book\nsvc dev';

function Beginning() {
  return html`<div class="empty"><h3>No project yet</h3>
    <p>A project has pages on an origin of its own, and may have a database. Begin with one here: <em>New project</em> above can make a guest book that works.</p>
    <p>Or at a shell, with a folder that you keep:</p>
    <${Lines} text=${shell} />
    <p>Or have an agent do it: its tools are at <code>/mcp</code>, and <code>/llms.txt</code> says how.</p>
  </div>`;
}

function Nowhere() {
  const id = session.value?.me.user_id;
  return html`<div class="empty"><h2>You are in no workspace yet</h2>
    <p>Make one of your own with <em>New workspace</em> above, or have somebody add you to theirs. They need your id:</p>
    <p class="row"><code><${Text} of=${id} /></code><${Button} class="small" onClick=${() => copy(id, 'your id')}>Copy id</${Button}></p>
  </div>`;
}

export function Projects() {
  const all = useLoad('projects', load);
  const actions = html`<a class="button" href="/w/new">New workspace</a><a class="button main" href="/new">New project</a>`;
  return html`<${Screen} title="Projects" actions=${actions}>
    <${Loaded} load=${all}>${({ workspaces, projects }) =>
      workspaces.length
        ? workspaces.map((workspace) => html`<${Group} key=${workspace.id} workspace=${workspace} projects=${projects.filter((project) => project.workspace.id === workspace.id)} />`)
        : html`<${Nowhere} />`}</${Loaded}>
  </${Screen}>`;
}
