// The pages and sites of a project: the list, a new one, and a share that becomes one.
import { useRef, useState } from 'preact/hooks';
import { call, newKey } from 'app/api.js';
import { go, useDraft, useLoad, useRun } from 'app/load.js';
import { Button, Fault, Field, Form, Loaded, Screen, Table, Text, Time, html, options, say } from 'app/ui.js';

const types = [
  ['html', 'HTML'],
  ['markdown', 'Markdown'],
  ['json', 'JSON'],
  ['csv', 'CSV'],
  ['mermaid', 'Mermaid'],
];
const endings = { html: 'html', htm: 'html', md: 'markdown', markdown: 'markdown', json: 'json', csv: 'csv', tsv: 'csv', mmd: 'mermaid', mermaid: 'mermaid' };
const maxBytes = 1_000_000;

const columns = ['Page', 'Slug', 'Type', 'State', 'Views', 'Changed'];

function List({ project, pages }) {
  const rows = pages.map(
    (page) => html`<tr key=${page.id}>
      <th scope="row"><a href=${`/p/${project}/pages/${page.slug}`}><${Text} of=${page.title} /></a></th>
      <td><code>${page.slug}</code></td><td>${page.type}</td>
      <td>${page.state === 'active' ? html`<span class="tag good">live</span>` : html`<span class="tag">${page.state}</span>`}</td>
      <td class="number">${page.visits.toLocaleString()}</td><td><${Time} at=${page.updated_at} /></td>
    </tr>`,
  );
  const empty = html`<h2>No page yet</h2><p>Write one here with <em>New page</em> above, send a file or a folder with <code>svc publish FILE --project …</code>, or have an agent call <code>manage_frontend</code> <code>create</code>.</p>`;
  return html`<${Table} caption="Pages" columns=${columns} numbers=${[4]} rows=${rows} empty=${empty} />`;
}

function NewPage({ project }) {
  const [type, setType, dropType] = useDraft(`${project}:new:type`, 'html');
  const [content, setContent, dropContent] = useDraft(`${project}:new:content`);
  const [slug, setSlug, dropSlug] = useDraft(`${project}:new:slug`);
  const [title, setTitle, dropTitle] = useDraft(`${project}:new:title`);
  const [fileFault, setFileFault] = useState('');
  const sent = useRef({});
  const read = async (file) => {
    setFileFault('');
    if (!file) return;
    if (file.size > maxBytes) return setFileFault('The file has more than 1 MB: send it with svc publish.');
    const text = await file.text();
    if (text.includes('\ufffd')) return setFileFault('The file is no UTF-8 text.');
    const known = endings[file.name.split('.').pop().toLowerCase()];
    setContent(text);
    if (known) setType(known);
    if (!slug) setSlug(file.name.replace(/\.[^.]*$/, '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, ''));
  };
  const publish = useRun(async () => {
    const body = { type, content, requested_slug: slug || undefined, title: title || undefined };
    const text = JSON.stringify(body);
    // The same page is not made twice, whatever became of the first answer.
    if (sent.current.text !== text) sent.current = { text, key: newKey() };
    const page = await call('create_frontend', { project, body, key: sent.current.key });
    for (const drop of [dropType, dropContent, dropSlug, dropTitle]) drop();
    go(`/p/${project}/pages/${page.slug}`);
    say(`Published ${page.title}.`);
  });
  return html`<section class="card"><h2>A new page</h2><${Form} onSubmit=${publish.run}>
    <div class="pair"><${Field} label="Type" as="select" value=${type} onInput=${setType} needs="editor">${options(types)}</${Field}>
    <${Field} label="Slug" value=${slug} onInput=${setSlug} needs="editor" maxlength="63" pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" hint="Where it answers. Made by itself, if you leave it out." autocomplete="off" /></div>
    <${Field} label="Title" value=${title} onInput=${setTitle} needs="editor" maxlength="200" hint="The content's own, if you leave it out." autocomplete="off" />
    <${Field} label="Content" as="textarea" rows="12" class="code" value=${content} onInput=${setContent} needs="editor" required />
    <${Field} label="From a file" type="file" onInput=${() => {}} onChange=${(event) => read(event.currentTarget.files[0])} needs="editor" error=${fileFault} hint="At most 1 MB of text." />
    <${Fault} of=${publish.problem} />
    <div class="actions"><a class="button" href=${`/p/${project}/pages`}>Back to the pages</a><${Button} type="submit" class="main" needs="editor" busy=${publish.busy}>Publish</${Button}></div>
  </${Form}></section>`;
}

function Claim({ project, onDone }) {
  const [id, setId, dropId] = useDraft(`${project}:claim:id`);
  const [token, setToken] = useState('');
  const claim = useRun(async () => {
    const page = await call('claim_share', { project, body: { id: id.trim(), delete_token: token.trim() } });
    dropId();
    setToken('');
    await onDone();
    say(`The share is the page ${page.slug} of this project now.`);
  });
  return html`<section class="card" id="claim"><h2>A share becomes a page</h2><p class="quiet">A quick share keeps its slug and its visits, and does not end any more. Its deploy answered both of these.</p>
    <${Form} onSubmit=${claim.run}><div class="pair">
      <${Field} label="Share id" value=${id} onInput=${setId} required needs="editor" autocomplete="off" />
      <${Field} label="Delete token" type="password" value=${token} onInput=${setToken} required needs="editor" autocomplete="off" /></div>
      <${Fault} of=${claim.problem} />
      <div class="actions"><${Button} type="submit" needs="editor" busy=${claim.busy}>Claim</${Button}></div>
    </${Form}></section>`;
}

export function Pages({ project, query, about }) {
  const pages = useLoad(`pages:${project}`, async () => (await call('list_frontends', { project })).frontends);
  const isNew = query.has('new');
  const toClaim = () => document.querySelector('#claim input').focus();
  const actions = isNew ? '' : html`<${Button} needs="editor" onClick=${toClaim}>Claim a share</${Button}><a class="button main" href=${`/p/${project}/pages?new`}>New page</a>`;
  return html`<${Screen} title="Pages" about=${about} actions=${actions}>
    ${isNew && html`<${NewPage} project=${project} />`}
    <${Loaded} load=${pages}>${(all) => html`<${List} project=${project} pages=${all} />`}</${Loaded}>
    ${!isNew && html`<${Claim} project=${project} onDone=${pages.reload} />`}
  </${Screen}>`;
}
