// People of a workspace, and what each may do.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { refreshMe, session } from 'app/session.js';
import { go, useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Table, Text, Time, html, options, say, useMay } from 'app/ui.js';

export const roles = [
  ['viewer', 'Viewer: reads'],
  ['editor', 'Editor: changes projects'],
  ['admin', 'Admin: people and keys, too'],
  ['owner', 'Owner: the plan and the end, too'],
];

function Member({ workspace, member, onDone, onEnd }) {
  const may = useMay()('admin');
  const set = useRun(async (role) => {
    await call('set_role', { workspace, user: member.user_id, body: { role } });
    await onDone();
    say(`${member.email ?? member.user_id} is ${role} now.`);
  });
  const who = member.email ?? member.user_id;
  return html`<tr><th scope="row"><${Text} of=${who} />${member.user_id === session.value?.me.user_id ? html` <span class="tag">you</span>` : ''}</th><td><code>${member.user_id}</code></td>
    <td>${may ? html`<select aria-label=${`Role of ${who}`} value=${member.role} onChange=${(event) => set.run(event.currentTarget.value)}>${options(roles.map(([value]) => [value, value]))}</select>` : member.role}<${Fault} of=${set.problem} /></td>
    <td><${Time} at=${member.created_at} /></td><td><${Button} class="small" needs="admin" onClick=${() => onEnd(member)}>Remove member</${Button}></td></tr>`;
}

function Add({ workspace, onDone }) {
  const [user, setUser, dropUser] = useDraft(`${workspace}:member`);
  const [role, setRole] = useState('editor');
  const add = useRun(async () => {
    await call('add_member', { workspace, body: { user_id: user.trim(), role } });
    dropUser();
    await onDone();
    say('Added the member.');
  });
  return html`<section class="card"><h2>A new member</h2><p class="quiet">Who wants in finds the own id at Projects, after signing in.</p><${Form} onSubmit=${add.run}>
    <div class="pair"><${Field} label="User id" value=${user} onInput=${setUser} required needs="admin" autocomplete="off" placeholder="usr_…" /><${Field} label="Role" as="select" value=${role} onInput=${setRole} needs="admin">${options(roles)}</${Field}></div>
    <${Fault} of=${add.problem} /><div class="actions"><${Button} type="submit" class="main" needs="admin" busy=${add.busy}>Add member</${Button}></div></${Form}></section>`;
}

export function Members({ workspace }) {
  const detail = useLoad(`workspace:${workspace}`, () => call('get_workspace', { workspace }));
  const [ending, end] = useState(null);
  const isMe = ending?.user_id === session.value?.me.user_id;
  const empty = html`<h2>No people yet</h2><p>Keys are no members: this workspace has none but keys. Add somebody by the id that signing in gives them.</p>`;
  return html`<${Screen} title="Members" about=${workspace}>
    <${Loaded} load=${detail}>${(value) => html`<${Table} caption="Members" columns=${['Member', 'Id', 'Role', 'Since', html`<span class="hidden">Actions</span>`]} rows=${value.members.map((member) => html`<${Member} key=${member.user_id} workspace=${workspace} member=${member} onDone=${detail.reload} onEnd=${end} />`)} empty=${empty} />
      <${Add} workspace=${workspace} onDone=${detail.reload} />`}</${Loaded}>
    ${ending && html`<${Ask} title="Remove member" onClose=${() => end(null)} work=${async () => {
      await call('remove_member', { workspace, user: ending.user_id });
      await refreshMe();
      if (isMe) go('/');
      else await detail.reload();
      say('Removed the member.');
    }}><p><strong><${Text} of=${ending.email ?? ending.user_id} /></strong> can do nothing here from now on.${isMe ? ' This is you.' : ''}</p></${Ask}>`}
  </${Screen}>`;
}
