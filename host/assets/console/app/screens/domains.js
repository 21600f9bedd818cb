// Names of the owner's own that lead to the project.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { config } from 'app/session.js';
import { useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Table, Text, Time, html, options, say } from 'app/ui.js';

async function load(project) {
  const settings = await config();
  // A server without origins of projects has nothing that a domain could lead to.
  if (!settings.sites_domain) return null;
  return (await call('list_domains', { project })).domains;
}

const tones = { active: 'good', pending: 'new', failing: 'bad', lost: 'bad' };
const told = {
  active: 'It leads here.',
  pending: 'Set one of these records, wait until DNS shows it, then verify.',
  failing: 'The proof is gone. It is served for a while; set one of these records again.',
  lost: 'It is not served any more. Set one of these records, then verify.',
};

function Domain({ project, domain, all, onDone }) {
  const [ending, end] = useState(false);
  const [redirect, setRedirect] = useState(domain.redirect_to ?? '');
  const verify = useRun(async () => {
    const now = await call('verify_domain', { project, domain: domain.name });
    await onDone();
    say(`${domain.name} is ${now.state}.`);
  });
  const lead = useRun(async (to) => {
    setRedirect(to);
    await call('update_domain', { project, domain: domain.name, body: { redirect_to: to || null } });
    await onDone();
    say(to ? `${domain.name} leads on to ${to}.` : `${domain.name} answers itself.`);
  });
  const records = domain.records.map((one) => html`<tr key=${one.value}><td>${one.type}</td><td><code><${Text} of=${one.name} /></code></td><td><code><${Text} of=${one.value} /></code></td></tr>`);
  const others = all.filter((one) => one.name !== domain.name && one.state === 'active');
  return html`<section class="card"><div class="over"><h2><${Text} of=${domain.name} /></h2><span class=${`tag ${tones[domain.state] ?? ''}`}>${domain.state}</span></div>
    <p>${told[domain.state]} ${domain.certificate.state !== 'none' && `Certificate: ${domain.certificate.state}.`} ${domain.certificate.detail && html`<${Text} of=${domain.certificate.detail} />`} ${domain.checked_at && html`<span class="quiet">Looked at <${Time} at=${domain.checked_at} />.</span>`}</p>
    ${domain.state !== 'active' && html`<${Table} caption=${`Records of ${domain.name}`} columns=${['Type', 'Name', 'Value']} rows=${records} />`}
    ${domain.state === 'active' && others.length > 0 && html`<${Field} label=${`Where ${domain.name} leads`} as="select" value=${redirect} needs="editor" onInput=${lead.run}>${options([['', 'It answers itself'], ...others.map((one) => [one.name, one.name])])}</${Field}>`}
    <${Fault} of=${verify.problem ?? lead.problem}>${verify.problem?.seen && html`<p>DNS shows now: ${verify.problem.seen.map((one) => `${one.type} ${one.name} ${one.value}`).join('; ') || 'nothing'}</p>`}</${Fault}>
    <div class="actions"><${Button} class="danger" needs="editor" onClick=${() => end(true)}>Delete domain</${Button}><${Button} needs="editor" busy=${verify.busy} onClick=${verify.run}>Verify</${Button}></div>
    ${ending && html`<${Ask} title="Delete domain" onClose=${() => end(false)} work=${async () => {
      await call('remove_domain', { project, domain: domain.name });
      await onDone();
      say(`Deleted ${domain.name}.`);
    }}><p><strong><${Text} of=${domain.name} /></strong> stops leading to this project at once.</p></${Ask}>`}</section>`;
}

function Add({ project, onDone }) {
  const [name, setName, dropName] = useDraft(`${project}:domain`);
  const add = useRun(async () => {
    const made = await call('add_domain', { project, body: { name: name.trim() } });
    dropName();
    await onDone();
    say(`Added ${made.name}. DNS must prove it now.`);
  });
  return html`<section class="card"><h2>A new domain</h2><${Form} onSubmit=${add.run}><${Field} label="Host name" value=${name} onInput=${setName} required maxlength="253" needs="editor" autocomplete="off" placeholder="www.example.com" />
    <${Fault} of=${add.problem} /><div class="actions"><${Button} type="submit" class="main" needs="editor" busy=${add.busy}>Add domain</${Button}></div></${Form}></section>`;
}

export function Domains({ project, about }) {
  const domains = useLoad(`domains:${project}`, () => load(project));
  return html`<${Screen} title="Domains" about=${about} lead="The project answers at its own origin in any case.">
    <${Loaded} load=${domains}>${(all) =>
      all
        ? html`${all.map((domain) => html`<${Domain} key=${domain.name} project=${project} domain=${domain} all=${all} onDone=${domains.reload} />`)}${!all.length && html`<div class="empty"><h2>No domain yet</h2><p>Bring one below, with <code>svc domain add NAME</code>, or have an agent call <code>manage_project</code> <code>add_domain</code>.</p></div>`}<${Add} project=${project} onDone=${domains.reload} />`
        : html`<div class="empty"><h2>This server has no origins for projects</h2><p>Its operator has set no <code>sites_domain</code>, so that no domain could lead to one.</p></div>`}</${Loaded}>
  </${Screen}>`;
}
