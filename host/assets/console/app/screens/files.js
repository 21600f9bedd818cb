// What visitors have uploaded: the owner takes a copy, or ends a file.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { hasBackend, NoDatabase } from 'app/project.js';
import { useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Loaded, Screen, Table, Text, Time, html, save, say, size } from 'app/ui.js';

const load = async (project) => ((await hasBackend(project)) ? call('list_files', { project }) : null);

const columns = ['File', 'Type', 'Size', 'Pixels', 'Visitor', 'Uploaded', html`<span class="hidden">Actions</span>`];

function List({ project, first, onDone }) {
  const [more, setMore] = useState(null);
  const [ending, end] = useState(null);
  const older = useRun(async () => {
    const page = await call('list_files', { project, query: { cursor: (more ?? first).next_cursor } });
    setMore({ files: [...(more?.files ?? []), ...page.files], next_cursor: page.next_cursor });
  });
  // The bytes are a stranger's: they are saved, and never shown here.
  const take = useRun(async (file) => {
    const answer = await call('get_file_of_visitor', { project, file: file.id });
    save(await answer.blob(), file.name, 'application/octet-stream');
  });
  const row = (file) => html`<tr key=${file.id}><th scope="row"><${Text} of=${file.name} /></th><td>${file.type}</td><td class="number">${size(file.size)}</td><td>${file.width ? `${file.width} × ${file.height}` : ''}</td>
    <td>${file.user_id ? html`<code>${file.user_id}</code>` : 'nobody who had signed in'}</td><td><${Time} at=${file.created_at} /></td>
    <td class="row"><${Button} class="small" busy=${take.busy} onClick=${() => take.run(file)}>Download file</${Button}><${Button} class="small" needs="editor" onClick=${() => end(file)}>Delete file</${Button}></td></tr>`;
  const empty = html`<h2>No file yet</h2><p>An action that takes <code>:svc_file</code> lets visitors bring files, and a page sends one with <code>svc.files.upload(action, file)</code>. <a href=${`/p/${project}/actions`}>Define such an action</a>, begin with <code>svc init --template pictures</code>, or have an agent do it.</p>`;
  return html`<p class="quiet">All files of the project use ${size(first.used_bytes)} of ${size(first.limit_bytes)}.</p>
    <${Fault} of=${take.problem ?? older.problem} />
    <${Table} caption="Files" columns=${columns} numbers=${[2]} rows=${[...first.files, ...(more?.files ?? [])].map(row)} empty=${empty} />
    ${(more ?? first).next_cursor && html`<div class="actions"><${Button} busy=${older.busy} onClick=${older.run}>Older</${Button}></div>`}
    ${ending && html`<${Ask} title="Delete file" onClose=${() => end(null)} work=${async () => {
      await call('delete_file_of_visitor', { project, file: ending.id });
      setMore(null);
      await onDone();
      say('Deleted the file.');
    }}><p><strong><${Text} of=${ending.name} /></strong> goes for everybody, and so do the rows that are bound to it. A restore of the database brings it back as long as the history reaches.</p></${Ask}>`}`;
}

export function Files({ project, about }) {
  const files = useLoad(`files:${project}`, () => load(project));
  return html`<${Screen} title="Files" about=${about} lead="What visitors have uploaded.">
    <${Loaded} load=${files}>${(first) => (first ? html`<${List} project=${project} first=${first} onDone=${files.reload} />` : html`<${NoDatabase} project=${project}>The actions of a database take and give files.</${NoDatabase}>`)}</${Loaded}>
  </${Screen}>`;
}
