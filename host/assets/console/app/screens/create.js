// A new project, with something to begin with; and a new workspace.
import { useRef, useState } from 'preact/hooks';
import { call, newKey } from 'app/api.js';
import { isAtLeast, refreshMe, roleIn, session } from 'app/session.js';
import { go, remember, useDraft, useRun } from 'app/load.js';
import { Button, Fault, Field, Form, Role, Screen, Text, html, options, say } from 'app/ui.js';

const lives = [
  ['', 'For good'],
  ['86400', 'A day'],
  ['604800', 'A week'],
  ['2592000', '30 days'],
  ['31536000', 'A year'],
];

const starts = [
  ['empty', 'Empty', 'An origin and nothing on it yet.'],
  ['page', 'Page', 'A first page in Markdown, which you then write.'],
  ['book', 'Guest book', 'A page, a database and two actions, that work as they are.'],
];

// A step that was answered is not sent again; one that was not is sent with the key that it had.
function useSteps() {
  const steps = useRef(new Map());
  return async (name, work) => {
    const step = steps.current.get(name) ?? { key: newKey() };
    steps.current.set(name, step);
    step.value ??= await work(step.key);
    return step.value;
  };
}

export function NewProject({ query }) {
  const all = session.value.me.memberships;
  const [name, setName, dropName] = useDraft('new:name');
  const [description, setDescription, dropDescription] = useDraft('new:description');
  const [workspace, setWorkspace] = useState(query.get('workspace') ?? all.find((one) => isAtLeast(one.role, 'editor'))?.workspace.slug ?? all[0]?.workspace.slug ?? '');
  const [life, setLife] = useState('');
  const [start, setStart] = useState('empty');
  const mayCreate = isAtLeast(roleIn(workspace), 'editor');
  const step = useSteps();
  const made = useRef(null);
  const create = useRun(async () => {
    const body = { name, description: description || undefined, workspace: workspace || undefined, ttl_seconds: life ? Number(life) : undefined };
    const text = JSON.stringify(body);
    // Another name is another project, unless this one is there already.
    const project = made.current ?? (await step(`project ${text}`, (key) => call('create_project', { body, key })));
    made.current = project;
    if (start !== 'empty') await (await import('app/templates.js')).begin(start, project, step);
    remember(`known:${project.id}`, { ...project, backend: start === 'book' ? { id: '' } : null });
    dropName('');
    dropDescription('');
    go(`/p/${project.id}`);
    say(`Made the project ${project.name}.`);
  });
  return html`<div class="narrow"><${Role.Provider} value=${roleIn(workspace)}><${Screen} title="New project">
    <${Form} onSubmit=${create.run}>
      <${Field} label="Name" value=${name} onInput=${setName} needs="editor" required maxlength="100" autocomplete="off" hint="For people. The project's address is made of it." />
      <${Field} label="Description" as="textarea" rows="2" value=${description} onInput=${setDescription} needs="editor" maxlength="2000" />
      <div class="pair"><${Field} label="Workspace" as="select" value=${workspace} onInput=${setWorkspace}>${options(all.map((one) => [one.workspace.slug, one.workspace.slug]))}</${Field}>
      <${Field} label="Lifetime" as="select" value=${life} onInput=${setLife} needs="editor">${options(lives)}</${Field}></div>
      <fieldset class="choices"><legend>Begin with</legend>
        ${starts.map(([value, label, about]) => html`<label class="choice" key=${value}><input type="radio" name="start" value=${value} checked=${start === value} disabled=${!mayCreate} onChange=${() => setStart(value)} aria-label=${label} aria-describedby=${`start-${value}`} /><span><strong>${label}</strong><span id=${`start-${value}`} class="hint">${about}</span></span></label>`)}
      </fieldset>
      <${Fault} of=${create.problem}>${create.problem?.code === 'plan_limit' && html`<p><a href=${`/w/${workspace}/plan`}>See the plan of <${Text} of=${workspace} /></a></p>`}</${Fault}>
      <div class="actions"><${Button} type="submit" class="main" needs="editor" busy=${create.busy}>Create</${Button}></div>
    </${Form}>
  </${Screen}></${Role.Provider}></div>`;
}

export function NewWorkspace() {
  const [name, setName, dropName] = useDraft('workspace:name');
  const [slug, setSlug, dropSlug] = useDraft('workspace:slug');
  const key = useRef(newKey());
  const isKey = session.value.me.kind === 'machine';
  const create = useRun(async () => {
    const workspace = await call('create_workspace', { body: { display_name: name, slug: slug || undefined }, key: key.current }).catch((error) => {
      if (error.status) key.current = newKey();
      throw error;
    });
    await refreshMe();
    dropName('');
    dropSlug('');
    go(`/w/${workspace.slug}/members`);
    say(`Made the workspace ${workspace.display_name}.`);
  });
  return html`<div class="narrow"><${Screen} title="New workspace" lead="A workspace owns projects, and has people and keys.">
    <${Form} onSubmit=${create.run}>
      <${Field} label="Display name" value=${name} onInput=${setName} required maxlength="100" autocomplete="off" readOnly=${isKey} />
      <${Field} label="Slug" value=${slug} onInput=${setSlug} maxlength="63" pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" autocomplete="off" readOnly=${isKey} hint="In addresses: a-z, 0-9 and hyphens. Made of the name, if you leave it out." />
      ${isKey && html`<p class="banner">You are signed in with a key, and keys make no workspaces. Sign in as a user, or have the operator run svc namespace create.</p>`}
      <${Fault} of=${create.problem} />
      <div class="actions"><${Button} type="submit" class="main" busy=${create.busy} off=${isKey} why="Keys make no workspaces.">Create</${Button}></div>
    </${Form}>
  </${Screen}></div>`;
}

