// The files of a site: what is live, one at a time. Whole folders come by `svc publish`.
import { useEffect, useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { dropDraft, keepDraft, readDraft } from 'app/session.js';
import { useRun } from 'app/load.js';
import { Ask, Button, Dialog, Fault, Field, Form, Table, Text, count, html, save, say, size } from 'app/ui.js';

const isText = (type) => /^text\/|json|xml|javascript|yaml/.test(type);
const maxText = 1_000_000;

function FileDialog({ at, path, onClose, onDone }) {
  const place = `${at.project}:${at.page}:file:${path}`;
  const [text, setText] = useState(() => readDraft(place) ?? null);
  const open = useRun(async () => setText(await (await call('get_file', { ...at, path })).text()));
  const type = (next) => {
    setText(next);
    keepDraft(place, next);
  };
  const leave = () => {
    dropDraft(place);
    onClose();
  };
  const store = useRun(async () => {
    await call('put_file', { ...at, path, bytes: new Blob([text]) });
    await onDone();
    say(`Published ${path}.`);
    leave();
  });
  useEffect(() => {
    if (text === null) open.run();
  }, []);
  return html`<${Dialog} title="File" onClose=${onClose} wide>
    <p><code><${Text} of=${path} /></code></p><${Fault} of=${open.problem} />
    <${Form} onSubmit=${store.run}>
      ${text !== null && html`<${Field} label="File content" as="textarea" class="code" rows="16" value=${text} onInput=${type} needs="editor" />`}
      <${Fault} of=${store.problem} />
      <div class="actions"><${Button} onClick=${leave}>Cancel</${Button}><${Button} type="submit" class="main" needs="editor" busy=${store.busy} off=${text === null}>Publish file</${Button}></div>
    </${Form}>
  </${Dialog}>`;
}

export function Site({ project, page, content, onDone }) {
  const at = { project, page };
  const [open, setOpen] = useState(null);
  const [ending, end] = useState(null);
  const [path, setPath] = useState('');
  const [file, setFile] = useState(null);
  const download = useRun(async (name) => {
    const answer = await call(name ? 'get_file' : 'get_archive', name ? { ...at, path: name } : at);
    save(await answer.blob(), name ? name.split('/').pop() : `${page}.tar`, 'application/octet-stream');
  });
  const put = useRun(async () => {
    await call('put_file', { ...at, path: path || file.name, bytes: file });
    await onDone();
    say(`Published ${path || file.name}.`);
    setPath('');
  });
  const all = Object.entries(content.files);
  const total = all.reduce((sum, [, one]) => sum + one.size, 0);
  const rows = all.map(
    ([name, one]) => html`<tr key=${name}><th scope="row"><${Text} of=${name} /></th><td>${one.media_type}</td><td class="number">${size(one.size)}</td>
      <td class="row">${isText(one.media_type) && one.size <= maxText && html`<${Button} class="small" onClick=${() => setOpen(name)}>Open file</${Button}>`}<${Button} class="small" onClick=${() => download.run(name)}>Download file</${Button}><${Button} class="small" needs="editor" onClick=${() => end(name)}>Delete file</${Button}></td></tr>`,
  );
  return html`<div><p class="quiet">${count(all.length, 'file')}, ${size(total)}. A folder is published with <code>svc publish FOLDER</code>.</p>
    <${Table} caption="Files" numbers=${[2]} columns=${['File', 'Type', 'Size', html`<span class="hidden">Actions</span>`]} rows=${rows} />
    <${Fault} of=${download.problem} />
    <div class="actions"><${Button} busy=${download.busy} onClick=${() => download.run()}>Download all files</${Button}></div>
    <section class="card"><h2>Publish one file</h2><p class="quiet">At once, for everybody.</p><${Form} onSubmit=${put.run}>
      <div class="pair"><${Field} label="File" type="file" required onChange=${(event) => setFile(event.currentTarget.files[0])} needs="editor" />
      <${Field} label="Path" value=${path} onInput=${setPath} needs="editor" hint="The file's name, if you leave it out." autocomplete="off" /></div>
      <${Fault} of=${put.problem} /><div class="actions"><${Button} type="submit" needs="editor" busy=${put.busy} off=${!file} why="Choose a file first.">Publish file</${Button}></div></${Form}></section>
    ${open && html`<${FileDialog} at=${at} path=${open} onClose=${() => setOpen(null)} onDone=${onDone} />`}
    ${ending && html`<${Ask} title="Delete file" onClose=${() => end(null)} work=${async () => {
      await call('delete_file', { ...at, path: ending });
      await onDone();
      say(`Deleted ${ending}.`);
    }}><p><code><${Text} of=${ending} /></code> goes at once. Roll back to an earlier revision to have it again.</p></${Ask}>`}
  </div>`;
}
