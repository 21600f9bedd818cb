// Who has signed in to the project's pages.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { useProjectDetail } from 'app/project.js';
import { useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Loaded, Screen, Table, Text, Time, html, say } from 'app/ui.js';

export function Visitors({ project, about }) {
  const first = useLoad(`visitors:${project}`, () => call('list_visitors', { project }));
  const detail = useProjectDetail(project);
  const [more, setMore] = useState(null);
  const [gone, setGone] = useState(new Set());
  const [ending, end] = useState(null);
  const [withFiles, takeFiles] = useState(false);
  const next = useRun(async () => {
    const page = await call('list_visitors', { project, query: { cursor: (more ?? first.value).next_cursor } });
    setMore({ visitors: [...(more?.visitors ?? []), ...page.visitors], next_cursor: page.next_cursor });
  });
  const providers = detail.value?.allowed_providers;
  const row = (one) => html`<tr key=${one.id}><th scope="row"><${Text} of=${one.name ?? one.email ?? one.id} /></th><td><${Text} of=${one.email ?? ''} /></td><td>${one.provider}</td><td><code>${one.id}</code></td><td><${Time} at=${one.created_at} /></td><td><${Time} at=${one.last_seen_at} /></td>
    <td class="row"><a class="button small" href=${`/p/${project}/actions?as=${one.id}`}>Call as<span class="hidden"> ${one.name ?? one.id}</span></a><${Button} class="small" needs="editor" onClick=${() => (takeFiles(false), end(one))}>Forget</${Button}></td></tr>`;
  return html`<${Screen} title="Visitors" about=${about} lead=${html`Sign-in by ${providers ? providers.join(', ') : 'every provider of this server'}. <a href=${`/p/${project}/settings`}>Change it</a>`}>
    <${Loaded} load=${first}>${(value) => {
      const all = [...value.visitors, ...(more?.visitors ?? [])].filter((one) => !gone.has(one.id));
      const empty = html`<h2>Nobody has signed in yet</h2><p>A page signs its visitors in with <code>svc.auth.login()</code>, and an action asks who they are with <code>:svc_user_id</code>. Under <code>serve --dev</code> there is a provider <code>dev</code> to try it with.</p>`;
      return html`<${Table} caption="Visitors" columns=${['Visitor', 'E-mail', 'Provider', 'Id', 'Since', 'Last seen', html`<span class="hidden">Actions</span>`]} rows=${all.map(row)} empty=${empty} />
        <${Fault} of=${next.problem} />
        ${(more ?? value).next_cursor && html`<div class="actions"><${Button} busy=${next.busy} onClick=${next.run}>Older</${Button}></div>`}`;
    }}</${Loaded}>
    ${ending && html`<${Ask} title="Forget" onClose=${() => end(null)} work=${async () => {
      await call('forget_visitor', { project, visitor: ending.id, query: { files: withFiles || undefined } });
      setGone(new Set([...gone, ending.id]));
      say('Forgot the visitor.');
    }}><p>The profile and the sessions of <strong><${Text} of=${ending.name ?? ending.email ?? ending.id} /></strong> are erased. Rows that your actions wrote stay. Who signs in again gets another id.</p>
      <label class="check"><input type="checkbox" checked=${withFiles} onChange=${(event) => takeFiles(event.currentTarget.checked)} /> Delete the files that they uploaded, too</label></${Ask}>`}
  </${Screen}>`;
}
