// The newest calls, while they are in the server's memory.
import { useEffect, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { useLoad, usePoll, useRun } from 'app/load.js';
import { Button, Fault, Field, Loaded, Screen, Switch, Table, Text, Time, html, options } from 'app/ui.js';

const kinds = ['call', 'query', 'live', 'room', 'sign_in', 'payment', 'upload', 'tool'];
const shown = 500;

const nothing = { key: '', entries: [], before: undefined };
const isName = (text) => /^[a-z][a-z0-9_]{0,63}$/.test(text);

/** Answers the newest entries before those that were there, or alone where some between them were missed. */
function join(fresh, had) {
  const ids = new Set(fresh.entries.map((entry) => entry.id));
  if (!had?.entries.some((entry) => ids.has(entry.id))) return fresh;
  const entries = [...fresh.entries, ...had.entries.filter((entry) => !ids.has(entry.id))];
  return entries.length > shown ? fresh : { entries, next_before: had.next_before };
}

export function Log({ project, about }) {
  const [kind, setKind] = useState('');
  const [typed, type] = useState('');
  const [action, setAction] = useState('');
  const [follows, follow] = useState(false);
  const [more, setMore] = useState(nothing);
  // A name is asked for when it is one, and nobody types any more.
  useEffect(() => {
    const timer = setTimeout(() => setAction(isName(typed) ? typed : ''), 300);
    return () => clearTimeout(timer);
  }, [typed]);
  const key = `log:${project}:${kind}:${action}`;
  const ask = (before) => call('list_log', { project, query: { kind, action, before, limit: 100 } });
  const log = useLoad(key, () => ask());
  const older = more.key === key ? more : nothing;
  const before = older.before === undefined ? log.value?.next_before : older.before;
  usePoll(
    2000,
    async () => {
      const joined = join(await ask(), log.value);
      if (joined.next_before !== log.value?.next_before) setMore(nothing);
      log.set(joined);
    },
    follows,
  );
  const next = useRun(async () => {
    const page = await ask(before);
    setMore({ key, entries: [...older.entries, ...page.entries].slice(0, shown), before: page.next_before });
  });
  const row = (entry) => html`<tr key=${entry.id}><td><${Time} at=${entry.at} fine /></td><th scope="row">${entry.kind}${entry.action ? html` <code>${entry.action}</code>` : ''}</th><td>/${entry.slug ?? ''}</td><td><span class=${`tag ${entry.status < 400 ? 'good' : 'bad'}`}>${entry.status}</span> ${entry.code ?? ''}</td><td class="number">${entry.ms}</td><td>${entry.user_id ? html`<code>${entry.user_id}</code>` : (entry.client ?? '')}</td><td><${Text} of=${entry.detail ?? ''} /> <code class="quiet">${entry.request_id}</code></td></tr>`;
  return html`<${Screen} title="Log" about=${about} lead="The newest calls. What was sent and answered is not in it; a restart forgets it.">
    <div class="filter"><${Field} label="Kind" as="select" value=${kind} onInput=${setKind}>${options([['', 'All'], ...kinds.map((one) => [one, one.replace('_', ' ')])])}</${Field}>
      <${Field} label="Action" value=${typed} onInput=${type} autocomplete="off" hint=${typed && !isName(typed) ? 'No action has such a name.' : ''} /><div class="actions"><${Switch} label="Follow" on=${follows} onChange=${follow} /></div></div>
    <${Loaded} load=${log}>${(value) => html`<${Table} caption="Log" columns=${['When', 'What', 'Page', 'Answer', 'ms', 'Who', 'Why']} rows=${[...value.entries, ...older.entries].map(row)} class="dense" empty=${html`<p>Nothing was called yet, or it is forgotten.</p>`} />`}</${Loaded}>
    <${Fault} of=${next.problem} />
    ${before && html`<div class="actions"><${Button} busy=${next.busy} onClick=${next.run}>Older</${Button}></div>`}
  </${Screen}>`;
}
