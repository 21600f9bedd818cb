// One page: its source, its revisions, and what was ever live.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, newKey } from 'app/api.js';
import { dropDraft, keepDraft, readDraft } from 'app/session.js';
import { Editor } from 'app/editor.js';
import { go, useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Loaded, Screen, Table, Text, Time, count, html, say, spelled } from 'app/ui.js';
import { Site } from 'app/site.js';

async function load(project, page) {
  const [frontend, content, revisions] = await Promise.all([
    call('get_frontend', { project, page }),
    call('get_content', { project, page }),
    call('list_revisions', { project, page }),
  ]);
  return { frontend, content, revisions };
}

const tabs = ['Source', 'Revisions', 'Releases'];

/** Tabs as WAI-ARIA has them: the arrows move, and the panel is what was chosen. */
function Tabs({ chosen, choose }) {
  const row = useRef(null);
  const move = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(chosen) + by + tabs.length) % tabs.length];
    choose(next);
    row.current.querySelector(`#tab-${next}`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="Parts of the page" ref=${row} onKeyDown=${move}>
    ${tabs.map((tab) => html`<button type="button" key=${tab} id=${`tab-${tab}`} role="tab" aria-selected=${String(tab === chosen)} aria-controls=${tab === chosen ? `panel-${tab}` : undefined} tabindex=${tab === chosen ? 0 : -1} onClick=${() => choose(tab)}>${tab}</button>`)}
  </div>`;
}

const kinds = { html: 'html', markdown: 'html' };

function Source({ project, page, loaded, onDone }) {
  const { frontend, content, revisions } = loaded;
  const draft = `${project}:${page}:source`;
  const live = { revision: content.revision_id ?? revisions.active_revision_id, sha256: content.content_sha256 };
  const [kept] = useState(() => {
    const one = readDraft(draft);
    return one?.text === content.content ? undefined : one;
  });
  const [text, setText] = useState(kept?.text ?? content.content);
  // A draft is made from the revision that its writer has read; what became live meanwhile is told, not overwritten.
  const [base, setBase] = useState(kept?.base ?? live);
  const [note, setNote, dropNote] = useDraft(`${project}:${page}:message`);
  const [made, setMade] = useState(null);
  const isChanged = text !== content.content;
  const isStale = base.sha256 !== content.content_sha256;
  const sent = useRef({});
  // The answer that was kept is shown first. An editor that nobody typed into follows what is live, and a text that went live is no draft.
  const seen = useRef(content);
  useLayoutEffect(() => {
    const before = seen.current;
    seen.current = content;
    if (before.content_sha256 === content.content_sha256) return;
    if (text !== before.content && text !== content.content) return;
    setText(content.content);
    setBase(live);
    dropDraft(draft);
  }, [content]);
  const type = (next) => {
    setText(next);
    if (next === content.content) dropDraft(draft);
    else keepDraft(draft, { text: next, base });
  };
  const settle = (nextBase) => {
    dropDraft(draft);
    dropNote();
    setBase(nextBase);
  };
  const save = useRun(async () => {
    const body = { base_revision_id: revisions.active_revision_id, content: text, message: note || undefined };
    const written = JSON.stringify(body);
    if (sent.current.text !== written) sent.current = { text: written, key: newKey() };
    const answer = await call('create_revision', { project, page, body, key: sent.current.key });
    setMade(answer);
    dropNote();
    keepDraft(draft, { text, base, isSaved: true });
    await onDone();
    say(answer.deduplicated ? 'A revision with this source is there already.' : 'Saved the draft. Nobody sees it yet.');
  });
  const publish = useRun(async () => {
    const done = await call('republish_frontend', { project, page, body: { content: text } });
    settle({ revision: done.active_revision_id, sha256: done.content_sha256 });
    setMade(null);
    await onDone();
    say(`Published. ${done.url} has it.`);
  });
  const takeLive = () => {
    setText(content.content);
    settle(live);
  };
  const problem = publish.problem ?? save.problem;
  return html`<div>
    ${frontend.state !== 'active' && html`<p class="banner">This page is ${frontend.state}.</p>`}
    ${isStale && isChanged && html`<div class="banner"><p>Somebody has published meanwhile. Your text is still here; it was made from an older source.</p><div class="actions"><${Button} onClick=${takeLive}>Take what is live</${Button}></div></div>`}
    ${kept && !kept.isSaved && !isStale && isChanged && html`<p class="quiet">This is what you typed before; it is not saved yet.</p>`}
    <${Editor} label="Source" value=${text} onChange=${type} kind=${kinds[frontend.type]} needs="editor" fault=${problem?.line ? problem : undefined} size="tall" />
    <${Field} label="Message" value=${note} onInput=${setNote} needs="editor" maxlength="1000" autocomplete="off" hint="Why, for those who read the history." />
    <${Fault} of=${problem} />
    <div class="actions"><${Button} needs="editor" busy=${publish.busy} onClick=${publish.run}>Publish now</${Button}><${Button} class="main" needs="editor" busy=${save.busy} onClick=${save.run}>Save draft</${Button}></div>
    ${made && html`<div class="done"><p><a href=${`/p/${project}/pages/${page}/${made.revision.revision_id}`}>See the draft and promote it</a> · <a href=${made.preview_url} target="_blank" rel="noopener noreferrer">Preview in a new tab</a></p></div>`}
  </div>`;
}

function Mark({ state }) {
  const words = { active: 'live', draft: 'draft', superseded: 'was live', rolled_back: 'rolled back' };
  return html`<span class=${`tag ${state === 'active' ? 'good' : state === 'draft' ? 'new' : ''}`}>${words[state] ?? state}</span>`;
}

function Revisions({ project, page, first }) {
  const [more, setMore] = useState({ revisions: [], cursor: first.next_cursor });
  const [ending, end] = useState(null);
  const [gone, setGone] = useState(new Set());
  const older = useRun(async () => {
    const next = await call('list_revisions', { project, page, query: { cursor: more.cursor } });
    setMore({ revisions: [...more.revisions, ...next.revisions], cursor: next.next_cursor });
  });
  const all = [...first.revisions, ...more.revisions].filter((one) => !gone.has(one.revision_id));
  const rows = all.map(
    (one) => html`<tr key=${one.revision_id}>
      <th scope="row"><a href=${`/p/${project}/pages/${page}/${one.revision_id}`}><${Text} of=${one.message || one.title} /></a></th>
      <td><${Mark} state=${one.state} /></td><td><${Time} at=${one.created_at} fine /></td><td><code>${one.revision_id.slice(-12)}</code></td>
      <td>${one.state === 'draft' && html`<${Button} class="small" needs="editor" onClick=${() => end(one)}>Delete draft</${Button}>`}</td>
    </tr>`,
  );
  return html`<${Table} caption="Revisions" columns=${['Revision', 'State', 'Made', 'Id', html`<span class="hidden">Actions</span>`]} rows=${rows} empty=${html`<p>No revision yet: the first draft or publication makes one.</p>`} />
    <${Fault} of=${older.problem} />
    ${more.cursor && html`<div class="actions"><${Button} busy=${older.busy} onClick=${older.run}>Older</${Button}></div>`}
    ${ending && html`<${Ask} title="Delete draft" onClose=${() => end(null)} work=${async () => {
      await call('delete_revision', { project, page, revision: ending.revision_id });
      setGone(new Set([...gone, ending.revision_id]));
      say('Deleted the draft.');
    }}><p>The draft <strong><${Text} of=${ending.message || ending.title} /></strong> was never live. It cannot be had back.</p></${Ask}>`}`;
}

function Releases({ project, page }) {
  const releases = useLoad(`releases:${project}:${page}`, async () => (await call('list_releases', { project, page })).releases);
  return html`<${Loaded} load=${releases}>${(all) => html`<${Table} caption="Releases" columns=${['Revision', 'How', 'Message', 'When']} rows=${all.map(
    (one, at) => html`<tr key=${at}><th scope="row"><a href=${`/p/${project}/pages/${page}/${one.revision_id}`}>${one.revision_id.slice(-12)}</a></th><td>${one.kind}${at === 0 ? html` <span class="tag good">live</span>` : ''}</td><td><${Text} of=${one.message ?? ''} /></td><td><${Time} at=${one.at} fine /></td></tr>`,
  )} empty=${html`<p>Nothing was released yet.</p>`} />`}</${Loaded}>`;
}

/** The release before the one that is live: a bad one is undone from here. */
function before(revisions) {
  return revisions.revisions.find((one) => one.revision_id !== revisions.active_revision_id && one.promoted_at);
}

export function Page({ project, page, about }) {
  const load_ = useLoad(`page-all:${project}:${page}`, () => load(project, page));
  const [tab, choose] = useState('Source');
  const [isEnding, end] = useState(false);
  const loaded = load_.value;
  const { frontend, revisions, content } = loaded ?? {};
  const last = revisions && before(revisions);
  const actions = frontend && html`<a class="button" href=${frontend.url} target="_blank" rel="noopener noreferrer">Open page</a><${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete page</${Button}>`;
  const lead = frontend && html`<code>/${page}</code> · ${frontend.type} · ${count(frontend.visits, 'view')} · changed <${Time} at=${frontend.updated_at} />${last && html` · before it <a href=${`/p/${project}/pages/${page}/${last.revision_id}`}>${spelled(last.message || 'the release that was live')}</a>`}`;
  return html`<${Screen} title=${frontend?.title ?? page} about=${about} lead=${lead} actions=${actions}>
    <${Fault} of=${load_.problem} />
    ${loaded && html`${frontend.warnings?.length ? html`<ul class="banner">${frontend.warnings.map((one, at) => html`<li key=${at}><${Text} of=${one.detail} />${one.line ? ` (line ${one.line})` : ''}</li>`)}</ul>` : ''}
      <${Tabs} chosen=${tab} choose=${choose} />
      <div role="tabpanel" id=${`panel-${tab}`} aria-label=${`${tab} of the page`} tabindex="-1">
        ${tab === 'Source' && (content.files ? html`<${Site} project=${project} page=${page} content=${content} onDone=${load_.reload} />` : html`<${Source} project=${project} page=${page} loaded=${loaded} onDone=${load_.reload} />`)}
        ${tab === 'Revisions' && html`<${Revisions} key=${revisions.revisions.length} project=${project} page=${page} first=${revisions} />`}
        ${tab === 'Releases' && html`<${Releases} project=${project} page=${page} />`}
      </div>`}
    ${isEnding && html`<${Ask} title="Delete page" onClose=${() => end(false)} work=${async () => {
      await call('delete_frontend', { project, page });
      dropDraft(`${project}:${page}:source`);
      go(`/p/${project}/pages`);
      say(`Deleted the page ${page}.`);
    }}><p><strong>/${page}</strong> stops answering at once, with all its revisions. It cannot be had back.</p></${Ask}>`}
  </${Screen}>`;
}
