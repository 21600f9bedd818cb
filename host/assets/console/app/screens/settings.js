// What a project is called, where its origin leads, who may sign in, and its end.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { useProjectDetail } from 'app/project.js';
import { go, remember, useDraft, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Text, Time, html, options, say, spelled } from 'app/ui.js';

function Fields({ project, onDone }) {
  const [name, setName, dropName] = useDraft(`${project.id}:name`, project.name);
  const [description, setDescription, dropDescription] = useDraft(`${project.id}:description`, project.description ?? '');
  const [home, setHome, dropHome] = useDraft(`${project.id}:home`, project.home ?? '');
  const [providers, setProviders, dropProviders] = useDraft(`${project.id}:providers`, (project.allowed_providers ?? []).join(', '));
  const save = useRun(async () => {
    const list = providers.split(/[\s,]+/).filter(Boolean);
    const had = project.allowed_providers ?? [];
    // Only what was changed here is sent: the rest may have been changed elsewhere.
    const changed = (now, before) => (now === before ? undefined : now);
    const body = {
      name: changed(name, project.name),
      description: changed(description, project.description ?? ''),
      home: changed(home, project.home ?? ''),
      allowed_providers: list.join() === had.join() ? undefined : list,
    };
    if (Object.values(body).every((value) => value === undefined)) return say('Nothing was changed.');
    const now = await call('update_project', { project: project.id, body });
    dropName(now.name);
    dropDescription(now.description ?? '');
    dropHome(now.home ?? '');
    dropProviders(list.join(', '));
    await onDone();
    say('Saved.');
  });
  const slugs = project.members.map((page) => page.slug);
  const isGone = project.home && !slugs.includes(project.home);
  const pages = [['', 'The oldest page'], ...(isGone ? [[project.home, `${project.home}, which is gone`]] : []), ...slugs.map((slug) => [slug, slug])];
  return html`<${Form} onSubmit=${save.run}>
    <${Field} label="Name" value=${name} onInput=${setName} required maxlength="100" needs="editor" autocomplete="off" hint="The address keeps the name that the project was made with." />
    <${Field} label="Description" as="textarea" rows="3" value=${description} onInput=${setDescription} maxlength="2000" needs="editor" />
    <${Field} label="Home" as="select" value=${home} onInput=${setHome} needs="editor" hint=${`Where ${project.url} leads.`}>${options(pages)}</${Field}>
    <${Field} label="Sign-in providers" value=${providers} onInput=${setProviders} needs="editor" autocomplete="off" hint="Names, such as google, dev. Nothing: every provider of this server." />
    <${Fault} of=${save.problem} />
    <div class="actions"><${Button} type="submit" class="main" needs="editor" busy=${save.busy}>Save</${Button}></div>
  </${Form}>`;
}

function End({ project, onClose }) {
  const [typed, type] = useState('');
  return html`<${Ask} title="Delete project" onClose=${onClose} off=${typed !== project.name} why="Type the project's name first." work=${async () => {
    await call('delete_project', { project: project.id });
    go('/');
    say(`Deleted ${project.name}.`);
  }}><p>Its pages stop answering at once, and its database, actions, visitors and history go with it. It cannot be had back.</p>
    <${Field} label="Project name" value=${typed} onInput=${type} autocomplete="off" hint=${`Type ${spelled(project.name)} to delete it.`} /></${Ask}>`;
}

export function Settings({ project, about }) {
  const detail = useProjectDetail(project);
  const [isEnding, end] = useState(false);
  return html`<${Screen} title="Settings" about=${about}>
    <${Loaded} load=${detail}>${(value) => html`<div class="narrow">
      <${Fields} key=${value.updated_at} project=${value} onDone=${async () => { await detail.reload(); remember(`known:${project}`, detail.value); }} />
      <section class="card"><h2>What it is</h2><dl><dt>Id</dt><dd><code>${value.id}</code></dd><dt>Address</dt><dd><a href=${value.url} target="_blank" rel="noopener noreferrer">${value.url}</a></dd><dt>Made</dt><dd><${Time} at=${value.created_at} /></dd><dt>Ends</dt><dd>${value.expires_at ? html`<${Time} at=${value.expires_at} />` : 'Never by itself'}</dd><dt>Workspace</dt><dd><${Text} of=${value.workspace.slug} /></dd></dl></section>
      <section class="card end"><h2>The end of it</h2><p>${value.backend ? html`<a href=${`/p/${project}/schema`}>Schema</a> deletes the database alone. ` : ''}This deletes everything.</p><${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete project</${Button}></section>
      ${isEnding && html`<${End} project=${value} onClose=${() => end(false)} />`}
    </div>`}</${Loaded}>
  </${Screen}>`;
}
