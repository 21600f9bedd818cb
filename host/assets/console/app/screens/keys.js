// Keys of a workspace: for scripts, agents, and whoever signs in with one.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { isAtLeast, roleIn, session } from 'app/session.js';
import { Credential, ends } from 'app/credential.js';
import { useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Table, Text, Time, html, options, say, whyNot } from 'app/ui.js';

function Make({ workspace, onDone }) {
  const [role, setRole] = useState('editor');
  const [end, setEnd] = useState('');
  const [note, setNote, dropNote] = useDraft(`${workspace}:key:note`);
  const [made, setMade] = useState(null);
  const make = useRun(async () => {
    setMade(await call('create_key', { workspace, body: { role, expires_in: end ? Number(end) : undefined, note: note || undefined } }));
    dropNote();
    await onDone();
    say('Made a key.');
  });
  return html`<section class="card"><h2>A new key</h2>${made && html`<${Credential} made=${made} onClose=${() => setMade(null)} />`}<${Form} onSubmit=${make.run}>
    <div class="pair"><${Field} label="Role" as="select" value=${role} onInput=${setRole} needs="admin" hint="An operator makes keys of admins and owners.">${options([['editor', 'Editor: changes projects'], ['viewer', 'Viewer: only reads']])}</${Field}><${Field} label="Ends" as="select" value=${end} onInput=${setEnd} needs="admin">${options(ends)}</${Field}></div>
    <${Field} label="Note" value=${note} onInput=${setNote} maxlength="1000" needs="admin" autocomplete="off" hint="What it is for." />
    <${Fault} of=${make.problem} /><div class="actions"><${Button} type="submit" class="main" needs="admin" busy=${make.busy}>Make key</${Button}></div></${Form}></section>`;
}

export function Keys({ workspace }) {
  // The list itself is an admin's: others are told so, instead of being refused.
  const may = isAtLeast(roleIn(workspace), 'admin');
  const keys = useLoad(may ? `keys:${workspace}` : null, async () => (await call('list_keys', { workspace })).keys);
  const [ending, end] = useState(null);
  const mine = session.value?.key_id;
  const rows = keys.value?.map((key) => html`<tr key=${key.key_id}><th scope="row"><code>${key.key_id}</code>${key.key_id === mine ? html` <span class="tag">yours</span>` : ''}</th><td>${key.role}</td><td><${Text} of=${key.note ?? ''} /></td><td><${Time} at=${key.created_at} /></td><td>${key.expires_at ? html`<${Time} at=${key.expires_at} />` : 'Never'}</td><td>${key.last_used_at ? html`<${Time} at=${key.last_used_at} />` : 'Never'}</td><td><${Button} class="small" needs="admin" onClick=${() => end(key)}>Revoke</${Button}></td></tr>`);
  return html`<${Screen} title="Keys" about=${workspace}>
    ${may ? html`<${Loaded} load=${keys}>${() => html`<${Table} caption="Keys" columns=${['Key', 'Role', 'Note', 'Made', 'Ends', 'Last used', html`<span class="hidden">Actions</span>`]} rows=${rows} empty=${html`<p>No key yet.</p>`} />`}</${Loaded}>` : html`<p class="banner">${whyNot('admin').replace('do', 'see and do')}</p>`}
    <${Make} workspace=${workspace} onDone=${keys.reload} />
    ${ending && html`<${Ask} title="Revoke" onClose=${() => end(null)} work=${async () => {
      await call('revoke_key', { workspace, key: ending.key_id });
      say('Revoked the key.');
      await keys.reload();
    }}><p>Whatever uses the key <code>${ending.key_id}</code> is refused from now on${ending.note ? html`: <${Text} of=${ending.note} />` : ''}.${ending.key_id === mine ? ' You are signed in with it.' : ''}</p></${Ask}>`}
  </${Screen}>`;
}
