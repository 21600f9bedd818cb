// Agents of others, which call the project's actions as tools; and the owner's own, which needs a key.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { config } from 'app/session.js';
import { Credential, ends } from 'app/credential.js';
import { loadBackend, NoDatabase } from 'app/project.js';
import { useLoad, useRun } from 'app/load.js';
import { Button, Fault, Field, Form, Lines, Loaded, Screen, Switch, Table, Text, html, options, say } from 'app/ui.js';

async function load(project) {
  const [settings, backend] = await Promise.all([config(), loadBackend(project)]);
  const pages = backend?.agents ? (await call('list_frontends', { project })).frontends : [];
  return { settings, backend, pages };
}

function Tools({ project, loaded, onDone }) {
  const { backend, pages, settings } = loaded;
  const turn = useRun(async (on) => {
    await call('update_backend', { project, body: { agents: on } });
    await onDone();
    say(on ? 'Agents may call the actions below.' : 'Agents may call nothing any more.');
  });
  const tools = backend.actions.filter((action) => !action.requires_identity);
  const rows = tools.map((action) => html`<tr key=${action.name}><th scope="row"><a href=${`/p/${project}/actions/${action.name}`}>${action.name}</a></th><td>${action.kind === 'write' ? 'writes' : 'reads'}</td><td>${action.params.map((name) => html`<code key=${name}>${name}${name in action.defaults ? '?' : ''}</code> `)}</td><td>${action.note ? html`<${Text} of=${action.note} />` : html`<span class="quiet">No note: agents read only its name.</span>`}</td></tr>`);
  const page = pages.find((one) => one.state === 'active');
  return html`<section><h2>Agents of your visitors</h2><div class="over"><${Switch} label="Tools for agents" on=${backend.agents} busy=${turn.busy} needs="editor" onChange=${turn.run} /><p class="quiet">${backend.agents ? 'On: they may do what any visitor may without signing in.' : 'Off. Below is what they would see.'}</p></div>
    <${Fault} of=${turn.problem} />
    <${Table} caption="Tools" columns=${['Tool', 'Kind', 'Arguments', 'Description']} rows=${rows} empty=${html`<p>No tool: an action that needs no identity is one. <a href=${`/p/${project}/actions`}>Define an action</a>.</p>`} />
    ${backend.agents && page && html`<${Lines} text=${`claude mcp add --transport http ${page.slug} ${settings.sites_url}/${page.slug}/mcp`} label="Copy line for visitors" what="the line" />`}</section>`;
}

function Own({ workspace, base }) {
  const [role, setRole] = useState('editor');
  const [end, setEnd] = useState('2592000');
  const [made, setMade] = useState(null);
  const make = useRun(async () => {
    const body = { role, expires_in: end ? Number(end) : undefined, note: 'for an agent' };
    setMade(await call('create_key', { workspace, body }));
    say('Made a key for an agent.');
  });
  return html`<section class="card"><h2>An agent of yours</h2><p>It works on all projects of the workspace with a key of its own, which you can revoke in <a href=${`/w/${workspace}/keys`}>Keys</a>.</p>
    <${Form} onSubmit=${make.run}><div class="pair"><${Field} label="Role" as="select" value=${role} onInput=${setRole} needs="admin">${options([['editor', 'Editor: changes projects'], ['viewer', 'Viewer: only reads']])}</${Field}><${Field} label="Ends" as="select" value=${end} onInput=${setEnd} needs="admin">${options(ends)}</${Field}></div>
      <${Fault} of=${make.problem} />
      <div class="actions"><${Button} type="submit" class="main" needs="admin" busy=${make.busy}>Make key</${Button}></div></${Form}>
    ${made && html`<${Credential} made=${made} onClose=${() => setMade(null)} />`}
    <p>Put the credential into the agent's environment as <code>SVC_CREDENTIAL</code>, and tell it of the tools:</p>
    <${Lines} text=${`claude mcp add --transport http svc ${base}/mcp --header "Authorization: Bearer $SVC_CREDENTIAL"`} label="Copy line for your agent" what="the line" /></section>`;
}

export function Agents({ project, about, workspace }) {
  const all = useLoad(`agents:${project}`, () => load(project));
  return html`<${Screen} title="Agents" about=${about}>
    <${Loaded} load=${all}>${(value) => html`
      ${value.backend ? html`<${Tools} project=${project} loaded=${value} onDone=${all.reload} />` : html`<${NoDatabase} project=${project}>Its actions can be tools for agents.</${NoDatabase}>`}
      ${workspace && html`<${Own} workspace=${workspace} base=${value.settings.base_url} />`}`}</${Loaded}>
  </${Screen}>`;
}
