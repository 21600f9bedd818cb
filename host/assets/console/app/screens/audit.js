// Who changed what in a workspace, the last ninety days.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { isAtLeast, roleIn } from 'app/session.js';
import { known, useLoad, useRun } from 'app/load.js';
import { Button, Fault, Loaded, Screen, Table, Text, Time, html, whyNot } from 'app/ui.js';

async function load(workspace) {
  const [audit, people, keys] = await Promise.all([call('list_audit', { workspace }), call('get_workspace', { workspace }), call('list_keys', { workspace })]);
  const names = new Map([
    ...people.members.map((member) => [member.user_id, member.email]),
    ...keys.keys.map((key) => [key.key_id, key.note]),
    ['operator', 'the operator'],
  ]);
  return { audit, names };
}

export function Audit({ workspace }) {
  const may = isAtLeast(roleIn(workspace), 'admin');
  const first = useLoad(may ? `audit:${workspace}` : null, () => load(workspace));
  const [more, setMore] = useState({ entries: [], cursor: undefined });
  const cursor = more.cursor === undefined ? first.value?.audit.next_cursor : more.cursor;
  const older = useRun(async () => {
    const page = await call('list_audit', { workspace, query: { cursor } });
    setMore({ entries: [...more.entries, ...page.entries], cursor: page.next_cursor });
  });
  const row = ({ names }) => (entry, at) => {
    const project = known(`known:${entry.target}`);
    return html`<tr key=${at}><td><${Time} at=${entry.at} fine /></td><th scope="row">${names.get(entry.principal) ? html`<${Text} of=${names.get(entry.principal)} /> <code>${entry.principal}</code>` : html`<code>${entry.principal}</code>`}</th><td>${entry.action}</td><td>${project ? html`<a href=${`/p/${project.id}`}><${Text} of=${project.name} /></a>` : html`<code><${Text} of=${entry.target} /></code>`}</td><td><code>${entry.request_id}</code></td></tr>`;
  };
  return html`<${Screen} title="Audit" about=${workspace} lead="Every change of the last 90 days, and who made it.">
    ${may
      ? html`<${Loaded} load=${first}>${(value) => html`<${Table} caption="Audit" columns=${['When', 'Who', 'What', 'Of what', 'Request']} rows=${[...value.audit.entries, ...more.entries].map(row(value))} empty=${html`<p>Nothing was changed yet.</p>`} />`}</${Loaded}>
        <${Fault} of=${older.problem} />${cursor && html`<div class="actions"><${Button} busy=${older.busy} onClick=${older.run}>Older</${Button}></div>`}`
      : html`<p class="banner">${whyNot('admin').replace('do', 'see')}</p>`}
  </${Screen}>`;
}
