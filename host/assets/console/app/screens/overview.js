// A project at a glance: what it has, what it uses of what it may, what happened last.
import { call } from 'app/api.js';
import { config } from 'app/session.js';
import { loadBackend, useProjectDetail } from 'app/project.js';
import { useLoad } from 'app/load.js';
import { Fault, Lines, Loaded, Screen, Table, Text, Time, html, size } from 'app/ui.js';
import { Bars } from 'app/plot.js';

async function load(project) {
  const [limits, backend] = await Promise.all([config(), loadBackend(project)]);
  const past = backend && (await call('list_backend_history', { project, query: { limit: 500 } }));
  return { limits: limits.limits, base: limits.base_url, backend, past };
}

function Meter({ label, value, most, show = String }) {
  const share = most ? value / most : 0;
  return html`<div class="meter"><div class="over"><strong>${label}</strong><span>${show(value)} of ${show(most)}</span></div>
    <meter aria-label=${label} min="0" max=${most || 1} value=${value} high=${most * 0.9} optimum="0">${Math.round(share * 100)} %</meter></div>`;
}

/** What an agent needs to know; never a key, which it takes from its environment. */
const prompt = (project, base) => `You work on the project "${project.name}" (id ${project.id}) of the workspace "${project.workspace.slug}" on the server ${base}.
Its pages are at ${project.url}/. Read ${base}/llms.txt first: it says what the server does.
Call the tools at ${base}/mcp, or the API below ${base}/api/v1/projects/${project.id}. The credential is in the environment variable SVC_CREDENTIAL; send it as "Authorization: Bearer $SVC_CREDENTIAL", and never print it.
Draft before you publish: create_revision, look at its preview_url, then promote. Try a migration with dry_run before you mean it.`;

const lines = (project, base) => `svc login ${base}\nsvc pull ${project.host_label} --project ${project.id}\nsvc apply ${project.host_label}`;

const hour = new Intl.DateTimeFormat(undefined, { hour: 'numeric' });

function hours(moments) {
  const now = Date.now();
  const bars = Array.from({ length: 24 }, (_, at) => ({ label: hour.format(new Date(now - (23 - at) * 3_600_000)), value: 0 }));
  for (const { at } of moments) {
    const ago = Math.floor((now - Date.parse(at)) / 3_600_000);
    if (ago < 24 && ago >= 0) bars[23 - ago].value++;
  }
  return bars;
}

function Pages({ detail }) {
  const rows = detail.members.map((page) => html`<tr key=${page.id}><th scope="row"><a href=${`/p/${detail.id}/pages/${page.slug}`}>${page.slug}</a></th><td>${page.type}</td><td class="number">${page.visits.toLocaleString()}</td></tr>`);
  const total = detail.visits.total.toLocaleString();
  return html`<section><h2>Views</h2><p class="quiet">${total} in all, since each page was made.</p>
    <${Table} caption="Views of pages" columns=${['Page', 'Type', 'Views']} numbers=${[2]} rows=${rows} empty=${html`<p>No page yet. <a href=${`/p/${detail.id}/pages?new`}>Make the first one</a>, or have an agent do it.</p>`} /></section>`;
}

function Warnings({ all, project }) {
  if (!all?.length) return null;
  return html`<section class="banner"><h2>Warnings</h2><ul>${all.map((one, at) => html`<li key=${at}><code>${one.code}</code> <${Text} of=${one.detail} /> ${one.code === 'schema_ahead_of_ledger' && html`<a href=${`/p/${project}/schema`}>Send it again</a>`}</li>`)}</ul></section>`;
}

export function Overview({ project: id }) {
  const project = useProjectDetail(id);
  const rest = useLoad(`overview:${id}`, () => load(id));
  const detail = project.value;
  const { limits, base, backend, past } = rest.value ?? {};
  const isBare = detail && !detail.members.length && !detail.backend;
  const open = detail && html`<a class="button" href=${detail.url} target="_blank" rel="noopener noreferrer">Open ${new URL(detail.url).host.split('.')[0]}</a>`;
  const ends = detail?.expires_at && html`Ends <${Time} at=${detail.expires_at} />. `;
  return html`<${Screen} title=${detail?.name ?? 'Project'} lead=${detail && html`${ends}<${Text} of=${detail.description ?? ''} />`} actions=${detail?.members.length ? open : ''}>
    <${Fault} of=${project.problem} />
    <${Warnings} all=${backend?.warnings} project=${id} />
    ${isBare && html`<div class="empty"><h2>Nothing is in it yet</h2><p><a href=${`/p/${id}/pages?new`}>Make a page</a>, or <a href=${`/p/${id}/schema`}>make a database</a>. At a shell or with an agent, the lines below begin.</p></div>`}
    <${Loaded} load=${rest}>${() => html`<section class="meters" aria-label="What it uses">
      <${Meter} label="Database" value=${backend?.database.bytes ?? 0} most=${backend?.database.max_bytes ?? limits.database_bytes} show=${size} />
      <${Meter} label="History" value=${past?.bytes ?? 0} most=${limits.history_bytes} show=${size} />
      <${Meter} label="Sockets" value=${backend?.realtime.sockets ?? 0} most=${limits.sockets_per_backend} />
      <${Meter} label="Rooms" value=${backend?.realtime.rooms ?? 0} most=${limits.rooms_per_backend} />
    </section>`}</${Loaded}>
    ${detail && html`<div class="columns"><${Pages} detail=${detail} />
      ${past && html`<section><h2>Commits</h2><p class="quiet">${past.moments.length ? html`The last one <${Time} at=${past.newest} fine />.` : 'None yet.'} <a href=${`/p/${id}/history`}>History</a></p><${Bars} title="Commits an hour, the last day" bars=${hours(past.moments)} head=${['Hour', 'Commits']} /></section>`}</div>`}
    ${detail && base && html`<section><h2>For an agent</h2><p class="quiet">It names this project, and no key. ${html`<a href=${`/p/${id}/agents`}>Make a key for an agent</a>`}</p>
      <${Lines} text=${prompt(detail, base)} label="Copy prompt" what="the prompt" />
      <h2>For a shell</h2><${Lines} text=${lines(detail, base)} /></section>`}
  </${Screen}>`;
}

