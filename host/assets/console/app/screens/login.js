// Signing in: by a key, at the issuer, or by a link that is used once.
import { useEffect, useState } from 'preact/hooks';
import { ask } from 'app/api.js';
import { config, notice, session, signIn, takeReturn, who } from 'app/session.js';
import { go, useLoad, useRun } from 'app/load.js';
import { Button, Fault, Field, Form, Screen, Text, html, say } from 'app/ui.js';

const pattern = /^svc_[0-9a-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/;
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function crc32(text) {
  let sum = -1;
  for (const byte of new TextEncoder().encode(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** Answers what is wrong with a key that was pasted, by its form and its checksum; nothing, if it may be one. */
function faultOf(key) {
  // A token of an issuer has a form of its own.
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(key)) return '';
  if (!key.startsWith('svc_')) return 'A key begins with svc_.';
  if (!pattern.test(key)) return 'This is not a whole key: a key has 63 characters. Copy it again.';
  const at = key.lastIndexOf('_');
  let sum = crc32(key.slice(0, at));
  let text = '';
  while (sum) {
    text = digits[sum % 62] + text;
    sum = Math.floor(sum / 62);
  }
  return text.padStart(6, '0') === key.slice(at + 1) ? '' : 'A character of this key is wrong or missing: its checksum does not fit. Copy it again.';
}

const pendingPlace = 'svc-sign-in';
const random = (bytes) => encode(crypto.getRandomValues(new Uint8Array(bytes)));
const encode = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Leads to the issuer: authorization code, with a verifier that stays in this tab. */
async function leadToIssuer(oauth, stay) {
  const [verifier, state] = [random(48), random(24)];
  const challenge = encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
  sessionStorage.setItem(pendingPlace, JSON.stringify({ verifier, state, stay }));
  const to = new URL(oauth.authorization_endpoint);
  const query = {
    response_type: 'code',
    client_id: oauth.client_id,
    redirect_uri: `${location.origin}/callback`,
    scope: [oauth.scopes].flat().join(' '),
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource: oauth.audience,
    audience: oauth.audience,
  };
  for (const [name, value] of Object.entries(query)) if (value) to.searchParams.set(name, value);
  location.assign(to);
}

export function SignIn() {
  const settings = useLoad('config', () => config({ isFresh: true }));
  const oauth = settings.value?.oauth;
  const [code, setCode] = useState(() => /^#([0-9A-Za-z]{43})$/.exec(location.hash)?.[1]);
  useEffect(() => {
    const look = () => setCode(/^#([0-9A-Za-z]{43})$/.exec(location.hash)?.[1]);
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  const [key, type] = useState('');
  const [stay, setStay] = useState(true);
  const [wrong, setWrong] = useState('');
  const byKey = useRun(async () => {
    const given = key.trim();
    const fault = faultOf(given);
    setWrong(fault);
    if (fault) return;
    await signIn(given, { kind: 'key', stay });
    go(takeReturn(), { replace: true });
  });
  const byLink = useRun(async () => {
    // The code is used once: it leaves the address before it does anything.
    history.replaceState(null, '', '/login');
    setCode(undefined);
    const made = await ask('/_svc/console/session', { code }).catch((error) => {
      // A request that did not get through, or came too soon, has used nothing up.
      if (error.status === 0 || error.status === 429) setCode(code);
      throw error;
    });
    await signIn(made.credential, { kind: 'link', stay, expires_at: made.expires_at });
    go(takeReturn(), { replace: true });
    say(`Signed in to the workspace ${made.workspace.slug} as ${made.role}.`);
  });
  const byIssuer = useRun(() => leadToIssuer(oauth, stay));
  return html`<div class="narrow"><${Screen} title="Sign in" lead="This is the console of those who own projects on this server.">
    ${notice.value && html`<p class="banner">${notice.value}</p>`}
    ${session.value && html`<p class="banner">You are signed in as <${Text} of=${who.value} />. <a href="/">Go to the projects</a></p>`}
    ${(code || byLink.busy) && html`<section class="card"><h2>Your link</h2>
      <p>The link signs you in once, to the workspace that it was made for, until you sign out or for twelve hours.${session.value ? ' It takes the place of who is signed in now.' : ''}</p>
      <${Button} class="main" busy=${byLink.busy} onClick=${byLink.run}>Continue</${Button}></section>`}
    <${Fault} of=${byLink.problem?.status === 401 ? { code: 'unauthorized', title: 'The link does not work', detail: 'It was used already, or it is too old. Make a new one with svc console.' } : byLink.problem} />
    ${oauth && html`<section class="card"><h2>With your account</h2><p>At <${Text} of=${new URL(oauth.issuer).host} />, where this server's users are known.</p>
      <${Button} class=${code ? '' : 'main'} busy=${byIssuer.busy} onClick=${byIssuer.run}>Sign in</${Button}><${Fault} of=${byIssuer.problem} /></section>`}
    <section class="card"><h2>With a key</h2>
      <${Form} onSubmit=${byKey.run}>
        <${Field} label="Key" type="password" value=${key} onInput=${(text) => (type(text), setWrong(''))} error=${wrong} required autocomplete="off" spellcheck=${false} placeholder="svc_…" hint=${settings.value?.dev ? 'svc serve --dev printed one, beside a link that needs no key.' : 'An operator makes one with svc key create.'} />
        <label class="check"><input type="checkbox" checked=${stay} onChange=${(event) => setStay(event.currentTarget.checked)} /> Keep in this tab</label>
        <p class="hint">Else a reload forgets it. It is never stored beyond the tab.</p>
        <${Fault} of=${byKey.problem?.status === 401 ? undefined : byKey.problem} />
        ${byKey.problem?.status === 401 && html`<div class="fault" role="alert" data-code="unauthorized"><p><strong>The server does not know this key</strong></p><p>It was revoked, it has ended, or it is of another server.</p></div>`}
        <${Button} type="submit" class=${oauth || code ? '' : 'main'} busy=${byKey.busy}>Sign in with key</${Button}>
      </${Form}></section>
    <${Fault} of=${settings.problem} />
  </${Screen}></div>`;
}

/** Where the issuer sends the tab back to. */
export function Callback() {
  const [query] = useState(() => new URLSearchParams(location.search));
  const [failed, fail] = useState('');
  useEffect(() => {
    history.replaceState(null, '', '/callback');
    finish(query).then(
      () => go(takeReturn(), { replace: true }),
      (error) => fail(error.detail ?? error.message),
    );
  }, []);
  return html`<div class="narrow"><${Screen} title="Sign in">
    ${failed ? html`<div class="fault" role="alert" data-code="sign_in_failed"><p><strong>Signing in did not work</strong></p><p><${Text} of=${failed} /></p></div><p><a href="/login">Try again</a></p>` : html`<p class="waiting">One moment…</p>`}
  </${Screen}></div>`;
}

async function finish(query) {
  const pending = JSON.parse(sessionStorage.getItem(pendingPlace));
  sessionStorage.removeItem(pendingPlace);
  const { oauth } = await config();
  if (!oauth) throw new Error('This server has no issuer whose users could sign in here.');
  if (!pending || query.get('state') !== pending.state) throw new Error('The answer belongs to another attempt to sign in. Begin again.');
  if (query.has('iss') && query.get('iss') !== oauth.issuer) throw new Error('The answer comes from another issuer than the server trusts.');
  if (query.has('error')) throw new Error(query.get('error_description') || `The issuer said ${query.get('error')}.`);
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: query.get('code') ?? '',
    redirect_uri: `${location.origin}/callback`,
    client_id: oauth.client_id,
    code_verifier: pending.verifier,
  });
  if (oauth.audience) form.set('resource', oauth.audience);
  let answer;
  try {
    answer = await fetch(oauth.token_endpoint, { method: 'POST', body: form, headers: { Accept: 'application/json' }, credentials: 'omit', referrerPolicy: 'no-referrer' });
  } catch {
    throw new Error('The issuer does not answer, or does not let this origin ask for tokens. The operator can read how in docs/console.md.');
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok || !said.access_token) throw new Error(said.error_description || `The issuer refused the code: ${said.error ?? answer.status}.`);
  await signIn(said.access_token, { kind: 'token', stay: pending.stay });
}

