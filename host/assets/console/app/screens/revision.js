// One revision beside what is live: the difference, both previews, and the way to make it live.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { Difference } from 'app/editor.js';
import { useDraft, useLoad, useRun } from 'app/load.js';
import { Button, Fault, Field, Screen, Table, Text, Time, html, say } from 'app/ui.js';

async function load(project, page, revision) {
  const [one, content, live] = await Promise.all([
    call('get_revision', { project, page, revision }),
    call('get_content', { project, page, query: { revision_id: revision } }),
    call('get_content', { project, page }),
  ]);
  return { one, content, live };
}

/** A page of the owner's own, in a frame that may run scripts and nothing else. */
function Frame({ title, at, caption }) {
  return html`<figure class="preview"><iframe title=${title} src=${at} sandbox="allow-scripts" referrerpolicy="no-referrer"></iframe>
    <figcaption>${caption} <a href=${at} target="_blank" rel="noopener noreferrer">Open in a tab<span class="hidden">: ${title}</span></a></figcaption></figure>`;
}

function Files({ live, content }) {
  const names = [...new Set([...Object.keys(live.files ?? {}), ...Object.keys(content.files)])].sort();
  const changed = names
    .map((name) => [name, live.files?.[name]?.sha256, content.files[name]?.sha256])
    .filter(([, before, after]) => before !== after)
    .map(([name, before, after]) => html`<tr key=${name}><th scope="row"><${Text} of=${name} /></th><td>${!before ? 'new' : !after ? 'gone' : 'other bytes'}</td></tr>`);
  return html`<${Table} caption="Changed files" columns=${['File', 'Change']} rows=${changed} empty=${html`<p>No file differs.</p>`} />`;
}

const states = { active: 'It is live.', draft: 'It was never live.', superseded: 'It was live before.', rolled_back: 'It was live, and was rolled back.' };

export function Revision({ project, page, revision, about }) {
  const all = useLoad(`revision:${project}:${page}:${revision}`, () => load(project, page, revision));
  const [message, setMessage, dropMessage] = useDraft(`${project}:${page}:${revision}:message`);
  const [note, setNote] = useState('');
  const { one, content, live } = all.value ?? {};
  const isLive = one && live.revision_id === revision;
  const isBack = one && one.state !== 'draft' && !isLive;
  const word = isBack ? 'Roll back' : 'Promote';
  const release = useRun(async () => {
    const body = { revision_id: revision, expected_active_revision_id: live.revision_id, message: message || undefined };
    const done = await call(isBack ? 'rollback_revision' : 'promote_revision', { project, page, body });
    dropMessage();
    setNote(done.note ?? '');
    say(isBack ? 'Rolled back: this revision is live.' : 'Promoted: this revision is live.');
    await all.reload();
  });
  const conflict = release.problem?.code === 'revision_conflict' && release.problem;
  const lookAgain = async () => {
    await all.reload();
    release.clear();
  };
  // Previews of a page differ in the revision alone.
  const address = (id) => one.preview_url.replace(/[^/]+\/$/, `${id}/`);
  const kind = content?.type === 'html' || content?.type === 'markdown' ? 'html' : undefined;
  return html`<${Screen} title="Revision" about=${about} lead=${html`<a href=${`/p/${project}/pages/${page}`}>/${page}</a>${one && html` · <${Text} of=${one.message || one.title} /> · made <${Time} at=${one.created_at} fine />. ${states[isLive ? 'active' : one.state === 'active' ? 'superseded' : one.state]}`}`}>
    <${Fault} of=${all.problem} />
    ${one && html`
      ${note && html`<p class="banner"><${Text} of=${note} /></p>`}
      ${conflict
        ? html`<${Fault} of=${conflict}><p>Live is now <a href=${`/p/${project}/pages/${page}/${conflict.active_revision_id}`}>${conflict.active_revision_id}</a>. Look at the difference to it, then decide again.</p><div class="actions"><${Button} onClick=${lookAgain}>Compare with what is live now</${Button}></div></${Fault}>`
        : html`<${Fault} of=${release.problem} />`}
      ${isLive
        ? html`<p class="done">This revision is live.</p>`
        : html`<div class="release"><${Field} label="Message" value=${message} onInput=${setMessage} needs="editor" maxlength="1000" autocomplete="off" hint=${`Why. The revision's own, if you leave it out.`} />
          <${Button} class="main" needs="editor" busy=${release.busy} onClick=${release.run}>${word}</${Button}></div>`}
      <div class="columns frames">
        <${Frame} title="Live" at=${address(live.revision_id)} caption=${isLive ? 'Live: the same revision.' : 'Live. This is your page.'} />
        <${Frame} title="This revision" at=${address(revision)} caption="This revision. This is your page." />
      </div>
      <section role="region" aria-label="Difference"><h2>Difference</h2>
        ${content.files
          ? html`<${Files} live=${live} content=${content} />`
          : live.content === content.content
            ? html`<p class="quiet">The source is the same${one.title ? ', the title may differ' : ''}.</p>`
            : html`<${Difference} before=${live.content} after=${content.content} labels=${['Source that is live', 'Source of this revision']} kind=${kind} />`}
      </section>`}
  </${Screen}>`;
}
