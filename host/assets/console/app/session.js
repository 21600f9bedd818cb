// Who is signed in, and what they have typed. The credential is in `sessionStorage` of this tab, or in memory alone; other tabs ask for it.
import { computed, signal } from '@preact/signals-core';
import { ask, call, endLink, wire } from 'app/api.js';

const place = 'svc-session';
const drafts = 'svc-draft:';
/** Where this tab keeps what it has learned of projects. */
export const knownPlace = 'svc-known:';
const idleMs = 12 * 60 * 60 * 1000;

/** `{credential, kind, keep, me, expires_at}`; `kind` says how it came: `key`, `link` or `token`. */
export const session = signal(null);
/** Why somebody has to sign in again; shown on the screen that asks for it. */
export const notice = signal('');

const channel = new BroadcastChannel('svc-console');
let lastUse = Date.now();
for (const kind of ['pointerdown', 'keydown']) addEventListener(kind, () => (lastUse = Date.now()), { passive: true });

function keep(next) {
  session.value = next;
  try {
    if (next?.keep) sessionStorage.setItem(place, JSON.stringify(next));
    else sessionStorage.removeItem(place);
  } catch {
    // A browser may refuse storage: the session is in memory then.
  }
}

wire.credential = () => session.value?.credential;

// What was typed stays: only who signs out means to leave nothing.
wire.ended = () => {
  if (!session.value) return;
  notice.value = 'Your session has ended. Sign in again: what you typed is still here.';
  keep(null);
};

/** Takes a credential if the API does; answers who that is. */
export async function signIn(credential, { kind, stay = true, expires_at } = {}) {
  const me = await call('get_me', { credential });
  notice.value = '';
  lastUse = Date.now();
  // Whoever has several roles has to know each project's workspace: asked for now, screens need not ask.
  if (new Set(me.memberships.map((one) => one.role)).size > 1) await learnProjects(credential);
  keep({ credential, kind, keep: stay, me, expires_at, key_id: kind === 'token' ? undefined : credential.split('_')[1] });
  tell();
  return me;
}

async function learnProjects(credential) {
  const { projects } = await call('list_projects', { credential }).catch(() => ({ projects: [] }));
  for (const project of projects) sessionStorage.setItem(knownPlace + `known:${project.id}`, JSON.stringify(project));
}

/** Gives other tabs the session, and what this one knows of projects. */
function tell() {
  const known = Object.entries(sessionStorage).filter(([name]) => name.startsWith(`${knownPlace}known:`));
  channel.postMessage({ session: session.value, known });
}

/** Reads the caller anew: roles and workspaces change. */
export async function refreshMe() {
  const me = await call('get_me');
  if (session.value) keep({ ...session.value, me });
  return me;
}

/** Takes the caller's workspaces from a list that says the same. */
export function takeWorkspaces(workspaces) {
  if (!session.value) return;
  const memberships = workspaces.map(({ id, slug, role }) => ({ workspace: { id, slug }, role }));
  keep({ ...session.value, me: { ...session.value.me, memberships } });
}

/** Ends the session in every tab; the key of a link is revoked. */
export async function signOut() {
  // A key that the server does not know any more has ended; one that it cannot be told of ends by itself.
  if (session.value?.kind === 'link') await endLink().catch(() => {});
  leave();
  channel.postMessage({ ended: true });
}

function leave() {
  notice.value = '';
  keep(null);
  forgetDrafts();
}

channel.onmessage = ({ data }) => {
  if (data.ended) leave();
  else if (data.asks && session.value) tell();
  else if (data.session && !session.value) {
    notice.value = '';
    for (const [name, value] of data.known ?? []) if (name.startsWith(knownPlace)) sessionStorage.setItem(name, value);
    keep(data.session);
  }
};

/** Finds the session of this tab, or asks the others for theirs. */
export async function findSession() {
  try {
    session.value = JSON.parse(sessionStorage.getItem(place));
  } catch {
    session.value = null;
  }
  if (session.value) return;
  channel.postMessage({ asks: true });
  await new Promise((wake) => {
    const stop = session.subscribe((found) => found && wake());
    setTimeout(() => (stop(), wake()), 120);
  });
}

setInterval(() => {
  if (session.value && Date.now() - lastUse > idleMs) {
    notice.value = 'Nobody was here for twelve hours, so you were signed out. What you typed is still here.';
    keep(null);
  }
}, 60_000);

const settings = 'svc-config';
const settingsMs = 10 * 60_000;
let asked;

/**
 * The server's settings that a browser needs; this tab keeps them for a few minutes. Whoever signs in wants them as they are now: an
 * issuer that was away may be back.
 */
export function config({ isFresh = false } = {}) {
  if (isFresh) asked = undefined;
  asked ??= (async () => {
    try {
      if (isFresh) throw new Error();
      const { at, value } = JSON.parse(sessionStorage.getItem(settings));
      if (Date.now() - at < settingsMs) return value;
    } catch {
      // There are none yet.
    }
    const value = await ask('/config.json');
    sessionStorage.setItem(settings, JSON.stringify({ at: Date.now(), value }));
    return value;
  })();
  asked.catch(() => (asked = undefined));
  return asked;
}

const returnPlace = 'svc-return';
/** Keeps where somebody wanted to go before they had to sign in. */
export const keepReturn = (to) => sessionStorage.setItem(returnPlace, to);
export const takeReturn = () => {
  const to = sessionStorage.getItem(returnPlace) ?? '/';
  sessionStorage.removeItem(returnPlace);
  return to;
};

const ranks = { viewer: 1, editor: 2, machine: 2, admin: 3, owner: 4 };

/** Answers the caller's role in a workspace, by its id or slug; where all are one, that of all. */
export function roleIn(workspace) {
  const all = session.value?.me?.memberships ?? [];
  const found = all.find((one) => one.workspace.id === workspace || one.workspace.slug === workspace);
  if (found) return found.role;
  const roles = new Set(all.map((one) => one.role));
  return workspace === undefined && roles.size === 1 ? [...roles][0] : undefined;
}

export const isAtLeast = (role, needed) => (ranks[role] ?? 0) >= ranks[needed];

/** Who is signed in, in a few words. */
export const who = computed(() => {
  const { me, key_id } = session.value ?? {};
  if (!me) return '';
  if (me.kind === 'user') return me.email ?? me.user_id;
  const [only] = me.memberships;
  return only ? `${only.workspace.slug} · ${only.role === 'machine' ? 'editor' : only.role}` : `key ${key_id}`;
});

// Texts that are not sent yet, by the screen and the field. They are this tab's, and survive a reload.
const typed = new Map();

export function readDraft(name) {
  if (typed.has(name)) return typed.get(name);
  try {
    return JSON.parse(sessionStorage.getItem(drafts + name)) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(name, value) {
  if (value === undefined) return dropDraft(name);
  typed.set(name, value);
  try {
    sessionStorage.setItem(drafts + name, JSON.stringify(value));
  } catch {
    // Too long for the storage: it stays in memory, and does not survive a reload.
    sessionStorage.removeItem(drafts + name);
  }
}

export function dropDraft(name) {
  typed.delete(name);
  sessionStorage.removeItem(drafts + name);
}

function forgetDrafts() {
  typed.clear();
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(drafts)) sessionStorage.removeItem(name);
}
