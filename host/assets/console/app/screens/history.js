// The database's past: any commit of the last days can be had back, and that can be undone.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { loadBackend, NoDatabase } from 'app/project.js';
import { Bars } from 'app/plot.js';
import { useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Loaded, Screen, Table, Text, Time, count, html, say, size, spelled } from 'app/ui.js';

async function load(project) {
  const backend = await loadBackend(project);
  if (!backend) return { backend: null };
  return { backend, past: await call('list_backend_history', { project, query: { limit: 1000 } }) };
}

const exact = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 });
const shown = (at) => exact.format(new Date(at));

// The migration that a moment made, as far as its time tells.
function markOf(moment, next, migrations) {
  return migrations.find((one) => one.applied_at >= moment.at && (!next || one.applied_at < next.at) && Date.parse(one.applied_at) - Date.parse(moment.at) < 2000);
}

/** Commits between the first and the last moment, in some equal parts. */
function parts(moments) {
  const [last, first] = [Date.parse(moments[0].at), Date.parse(moments.at(-1).at)];
  const width = Math.max(1, last - first + 1) / 30;
  const times = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', second: width < 60_000 ? '2-digit' : undefined });
  const bars = Array.from({ length: 30 }, (_, at) => ({ label: times.format(new Date(first + at * width)), value: 0 }));
  for (const { at } of moments) bars[Math.min(29, Math.floor((Date.parse(at) - first) / width))].value++;
  return bars;
}

function Past({ project, loaded, onDone }) {
  const { backend, past } = loaded;
  const [more, setMore] = useState({ moments: [], before: past.next_before });
  const moments = [...past.moments, ...more.moments];
  // Counted from the newest: the slider's right end.
  const [back, setBack] = useState(0);
  const [isAsking, ask] = useState(false);
  const [undo, setUndo] = useState(null);
  const older = useRun(async () => {
    const page = await call('list_backend_history', { project, query: { limit: 1000, before: more.before } });
    setMore({ moments: [...more.moments, ...page.moments], before: page.next_before });
  });
  const restore = async (at) => {
    const answer = await call('restore_backend', { project, body: { at } });
    setUndo(answer.previous);
    setBack(0);
    setMore({ moments: [], before: null });
    await onDone();
    say(`The database is as it was ${spelled(shown(answer.restored_to))}.`);
  };
  const undoing = useRun(async () => {
    const answer = await call('restore_backend', { project, body: { at: undo } });
    setUndo(null);
    setBack(0);
    await onDone();
    say(`Undone: the database is as it was ${shown(answer.restored_to)}.`);
  });
  const chosen = moments[back];
  const rows = moments.slice(0, 200).map((moment, at) => {
    const mark = markOf(moment, moments[at - 1], backend.migrations);
    return html`<tr key=${moment.at} class=${at === back ? 'chosen' : ''}><th scope="row"><button type="button" class="plain" aria-pressed=${String(at === back)} onClick=${() => setBack(at)}><time datetime=${moment.at} title=${moment.at}>${shown(moment.at)}</time></button></th><td>${at === 0 ? html`<span class="tag good">now</span>` : count(at, 'later commit')}</td><td>${mark ? html`<span class="tag new">migration ${mark.version}</span> <${Text} of=${mark.note ?? ''} />` : ''}</td></tr>`;
  });
  return html`
    <${Bars} title="Commits over the time that is kept" bars=${parts(moments)} head=${['From', 'Commits']} />
    <div class="field wide"><label for="moment">Moment</label>
      <input id="moment" type="range" min="0" max=${moments.length - 1} step="1" value=${moments.length - 1 - back} aria-valuetext=${shown(chosen.at)} onInput=${(event) => setBack(moments.length - 1 - Number(event.currentTarget.value))} />
      <p class="over"><output for="moment">${back === 0 ? 'As it is now' : html`As it was <time datetime=${chosen.at} title=${chosen.at}>${shown(chosen.at)}</time>, before ${count(back, 'later commit')}`}</output></p></div>
    <div class="actions"><${Button} class="main" needs="editor" off=${back === 0} why="Choose an earlier moment first." onClick=${() => ask(true)}>Restore</${Button}>${undo && html`<${Button} needs="editor" busy=${undoing.busy} onClick=${undoing.run}>Undo</${Button}>`}</div>
    <${Fault} of=${undoing.problem} />
    <h2>Moments</h2><p class="quiet">From <${Time} at=${past.oldest} fine /> on; the history has ${size(past.bytes)}.</p>
    <${Table} caption="Moments" class="tall" columns=${['Moment', 'Since then', 'What']} rows=${rows} />
    ${moments.length > 200 && html`<p class="quiet">The newest 200 of ${count(moments.length, 'moment')}; the slider reaches all.</p>`}
    <${Fault} of=${older.problem} />
    ${more.before && html`<div class="actions"><${Button} busy=${older.busy} onClick=${older.run}>Older</${Button}></div>`}
    ${isAsking && html`<${Ask} title="Restore" onClose=${() => ask(false)} work=${() => restore(chosen.at)}><p>Every row goes back to <strong>${shown(chosen.at)}</strong>. <strong>${count(back, 'later commit')}</strong> will not be seen any more, of visitors, too.</p><p>The schema and the actions stay as they are. Undo brings the rows of now back.</p></${Ask}>`}`;
}

export function History({ project, about }) {
  const all = useLoad(`history:${project}`, () => load(project));
  return html`<${Screen} title="History" about=${about} lead="Each commit is a moment that the rows can go back to.">
    <${Loaded} load=${all}>${(value) =>
      !value.backend
        ? html`<${NoDatabase} project=${project}>Its past is kept here, commit by commit.</${NoDatabase}>`
        : value.past.moments.length
          ? html`<${Past} project=${project} loaded=${value} onDone=${all.reload} />`
          : html`<div class="empty"><h2>Nothing is kept yet</h2><p>Each write is a moment here. The operator says how much is kept (<code>history_bytes</code>).</p></div>`}</${Loaded}>
  </${Screen}>`;
}
