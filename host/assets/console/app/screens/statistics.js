// What visitors did, hour by hour or day by day.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { Bars } from 'app/plot.js';
import { useLoad } from 'app/load.js';
import { Field, Loaded, Screen, Table, html, options } from 'app/ui.js';

const spans = [
  ['1', 'The last day'],
  ['7', 'The last week'],
  ['30', 'The last 30 days'],
  ['90', 'The last 90 days'],
];
const series = [
  ['views', 'Views'],
  ['calls', 'Calls'],
  ['errors', 'Calls that failed', 'bad'],
  ['limited', 'Refused for their number', 'bad'],
  ['messages', 'Messages in rooms'],
  ['sign_ins', 'Sign-ins'],
  ['payments', 'Payments'],
];

function load(project, span) {
  const to = new Date();
  const from = new Date(to - span * 86_400_000);
  return call('get_stats', { project, query: { from: from.toISOString(), to: to.toISOString(), step: span > 7 ? 'day' : 'hour' } });
}

// Made once, as making one takes longer than all that it writes.
const days = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const hours = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: 'numeric' });

function Plots({ stats }) {
  const times = stats.step === 'day' ? days : hours;
  const labels = stats.series.map((point) => times.format(new Date(point.at)));
  const sum = (name) => stats.series.reduce((all, point) => all + point[name], 0);
  return html`<div class="plots">${series.map(([name, title, tone]) => html`<section key=${name}><h2>${title}</h2><p class="total">${sum(name).toLocaleString()}</p><${Bars} title=${title} head=${['Time', title]} bars=${stats.series.map((point, at) => ({ label: labels[at], value: point[name], tone }))} /></section>`)}</div>`;
}

export function Statistics({ project, about }) {
  const [span, setSpan] = useState('7');
  const stats = useLoad(`stats:${project}:${span}`, () => load(project, Number(span)));
  const pages = (value) => value.pages.map((page) => html`<tr key=${page.slug}><th scope="row"><a href=${`/p/${project}/pages/${page.slug}`}>${page.slug}</a></th><td class="number">${page.views.toLocaleString()}</td></tr>`);
  const actions = (value) => value.actions.map((one) => html`<tr key=${one.name}><th scope="row"><a href=${`/p/${project}/actions/${one.name}`}>${one.name}</a></th>${[one.calls, one.errors, one.p50_ms, one.p95_ms, one.p99_ms, one.rows].map((number, at) => html`<td key=${at} class="number">${number?.toLocaleString() ?? '–'}</td>`)}</tr>`);
  return html`<${Screen} title="Statistics" about=${about} lead="Counted by the hour, and kept for 90 days. Who called is not.">
    <${Field} label="Time" as="select" value=${span} onInput=${setSpan}>${options(spans)}</${Field}>
    <${Loaded} load=${stats}>${(value) => html`<${Plots} stats=${value} />
      <h2>Pages</h2><${Table} caption="Pages" columns=${['Page', 'Views']} numbers=${[1]} rows=${pages(value)} empty=${html`<p>Nobody looked at a page in this time.</p>`} />
      <h2>Actions</h2><${Table} caption="Actions" numbers=${[1, 2, 3, 4, 5, 6]} columns=${['Action', 'Calls', 'Failed', 'Median, ms', '95 %, ms', '99 %, ms', 'Rows']} rows=${actions(value)} empty=${html`<p>Nobody called an action in this time.</p>`} />`}</${Loaded}>
  </${Screen}>`;
}
