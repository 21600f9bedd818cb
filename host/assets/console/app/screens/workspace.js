// What a workspace is called, and its end.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { refreshMe } from 'app/session.js';
import { go, useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Time, count, html, say } from 'app/ui.js';

function Name({ workspace, detail, onDone }) {
  const [name, setName, dropName] = useDraft(`${workspace}:display`, detail.display_name);
  const save = useRun(async () => {
    const now = await call('update_workspace', { workspace, body: { display_name: name } });
    dropName(now.display_name);
    await onDone();
    say('Saved.');
  });
  return html`<${Form} onSubmit=${save.run}><${Field} label="Display name" value=${name} onInput=${setName} required maxlength="100" needs="admin" autocomplete="off" />
    <${Fault} of=${save.problem} /><div class="actions"><${Button} type="submit" class="main" needs="admin" busy=${save.busy}>Save</${Button}></div></${Form}>`;
}

export function WorkspaceSettings({ workspace }) {
  const detail = useLoad(`workspace:${workspace}`, () => call('get_workspace', { workspace }));
  const [isEnding, end] = useState(false);
  return html`<${Screen} title="Settings" about=${workspace}><${Loaded} load=${detail}>${(value) => html`<div class="narrow">
    <${Name} key=${value.display_name} workspace=${workspace} detail=${value} onDone=${detail.reload} />
    <section class="card"><h2>What it is</h2><dl><dt>Id</dt><dd><code>${value.id}</code></dd><dt>Slug</dt><dd><code>${value.slug}</code></dd><dt>Made</dt><dd><${Time} at=${value.created_at} /></dd><dt>Plan</dt><dd>${value.plan}</dd></dl></section>
    <section class="card end"><h2>The end of it</h2><p>All projects, members and keys go, too.</p><${Button} class="danger" needs="owner" onClick=${() => end(true)}>Delete workspace</${Button}></section>
    ${isEnding && html`<${Ask} title="Delete workspace" onClose=${() => end(false)} work=${async () => {
      await call('delete_workspace', { workspace });
      await refreshMe().catch(() => {});
      go('/');
      say(`Deleted the workspace ${value.slug}.`);
    }}><p>This is <strong>${value.slug}</strong>. ${count(value.project_count, 'project')} and everything in them go at once. A subscription ends with the period that is paid. It cannot be had back.</p></${Ask}>`}
  </div>`}</${Loaded}></${Screen}>`;
}
