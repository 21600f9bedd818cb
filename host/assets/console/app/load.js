// Where the reader is; what screens ask the server for there, do, and keep meanwhile.
import { useEffect, useRef, useState } from 'preact/hooks';
import { batch, computed, signal } from '@preact/signals-core';
import { Problem, call } from 'app/api.js';
import { dropDraft, keepDraft, knownPlace, readDraft } from 'app/session.js';

const here = () => ({ path: location.pathname, search: location.search, hash: location.hash });

export const address = signal(here());
/** How many answers the screen is waiting for before it is shown as it is. */
const awaited = signal(0);
/** Whether the screen of the address is still on its way. */
export const arriving = signal(true);
export const isBusy = computed(() => arriving.value || awaited.value > 0);
/** Whether the next screen is one that somebody went to: its heading takes the focus then. */
export const travelled = { yes: false };

/** Says that an answer is awaited; what it answers is called once, when there is nothing to wait for any more. */
export function begin() {
  awaited.value = awaited.peek() + 1;
  let isOver = false;
  return () => {
    if (!isOver) awaited.value = awaited.peek() - 1;
    isOver = true;
  };
}

/** Goes to an address of the console. */
export function go(to, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  arrive();
  if (!replace) scrollTo(0, 0);
}

function arrive() {
  const next = here();
  const old = address.peek();
  const isElsewhere = next.path !== old.path || next.search !== old.search;
  travelled.yes = isElsewhere;
  batch(() => {
    if (isElsewhere) arriving.value = true;
    address.value = next;
  });
}

addEventListener('popstate', arrive);

// A link of the console changes the address alone; the browser keeps those with a modifier, and those that lead elsewhere.
addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || link.getAttribute('href').startsWith('#')) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
});

const answers = new Map();
// Answers that are shown at once when somebody comes back: so many, and an older one goes for each newer one.
const keptAnswers = 40;
const learned = new Map();
const underway = new Map();

export function forgetAnswers() {
  answers.clear();
  learned.clear();
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(knownPlace)) sessionStorage.removeItem(name);
}

function keepAnswer(key, value) {
  answers.delete(key);
  answers.set(key, value);
  if (answers.size > keptAnswers) answers.delete(answers.keys().next().value);
}

/** What was learned under a key; this tab keeps it through a reload, so that screens ask less. */
export function known(key) {
  if (learned.has(key)) return learned.get(key);
  if (answers.has(key)) return answers.get(key);
  const kept = sessionStorage.getItem(knownPlace + key);
  return kept === null ? undefined : JSON.parse(kept);
}

export function remember(key, value) {
  learned.set(key, value);
  sessionStorage.setItem(knownPlace + key, JSON.stringify(value));
  return value;
}

/** Has all who want the same wait for one request. */
export function share(key, fetcher) {
  if (underway.has(key)) return underway.get(key);
  const asked = Promise.resolve().then(fetcher);
  underway.set(key, asked);
  asked.catch(() => {}).finally(() => underway.delete(key));
  return asked;
}

/** Reads a project, and keeps what other screens want to know of it. */
export const fetchProject = (id) =>
  share(`get:${id}`, async () => {
    const project = await call('get_project', { project: id });
    const { name, url, host_label, workspace, backend } = project;
    remember(`known:${id}`, { id, name, url, host_label, workspace, backend });
    return project;
  });

/**
 * Loads what a screen shows, under a key. The last answer is shown at once, and again when the next one is there; several who load the
 * same key wait for one request. A key of null loads nothing.
 */
export function useLoad(key, fetcher) {
  const [, redraw] = useState(0);
  const load = useRef(null);
  if (!load.current || load.current.key !== key) {
    load.current?.leave();
    load.current = makeLoad(key, fetcher, () => redraw((n) => n + 1));
    if (key !== null) load.current.run(true);
  }
  load.current.fetcher = fetcher;
  useEffect(() => () => load.current.leave(), []);
  return load.current;
}

function makeLoad(key, fetcher, redraw) {
  let isGone = false;
  let turn = 0;
  let done = () => {};
  const load = {
    key,
    fetcher,
    value: key === null ? undefined : answers.get(key),
    problem: undefined,
    leave() {
      isGone = true;
      done();
    },
    set(value) {
      load.value = value;
      load.problem = undefined;
      if (key !== null) keepAnswer(key, value);
      if (!isGone) redraw();
    },
    reload: () => load.run(false),
    async run(isFirst) {
      const mine = ++turn;
      if (isFirst) done = begin();
      try {
        const value = await (isFirst ? share(key, () => load.fetcher()) : load.fetcher());
        if (mine === turn) load.set(value);
      } catch (error) {
        if (mine !== turn) return;
        load.problem = asProblem(error);
        if (!isGone) redraw();
      } finally {
        if (isFirst) done();
      }
    },
  };
  return load;
}

/** What went wrong, as a problem; our own mistakes are told like the server's. */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  console.error(error);
  return new Problem({ status: 0, code: 'console_failed', title: 'The console made a mistake', detail: String(error?.message ?? error) });
}

/** What the reader has to mend before anything is sent. */
export const refuse = (title, detail = '') => new Problem({ status: 0, code: 'not_sent', title, detail });

/** Something that a button does: `run` does it, one at a time; `problem` says why it did not work. */
export function useRun(work) {
  const [state, set] = useState({ busy: false, problem: undefined });
  const latest = useRef(work);
  const isBusy = useRef(false);
  latest.current = work;
  const run = async (...args) => {
    if (isBusy.current) return undefined;
    isBusy.current = true;
    set({ busy: true, problem: undefined });
    try {
      const value = await latest.current(...args);
      set({ busy: false, problem: undefined });
      return value;
    } catch (error) {
      set({ busy: false, problem: asProblem(error) });
      return undefined;
    } finally {
      isBusy.current = false;
    }
  };
  return { ...state, run, clear: () => set({ busy: false, problem: undefined }) };
}

/** Runs something again and again while the tab is looked at; after a refusal as late as the server says. */
export function usePoll(ms, work, isOn = true) {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    if (!isOn) return undefined;
    let timer;
    const turn = async () => {
      let wait = ms;
      if (document.visibilityState === 'visible') {
        await latest.current().catch((error) => (wait = Math.max(ms, (error.retryAfter ?? 10) * 1000)));
      }
      timer = setTimeout(turn, wait);
    };
    timer = setTimeout(turn, ms);
    return () => clearTimeout(timer);
  }, [ms, isOn]);
}

/** A text that is typed, and stays until it is sent: through errors, reloads, and the end of a session. */
export function useDraft(name, initial = '') {
  const [value, set] = useState(() => readDraft(name) ?? initial);
  return [
    value,
    (next) => {
      set(next);
      keepDraft(name, next === initial ? undefined : next);
    },
    (next = initial) => {
      set(next);
      dropDraft(name);
    },
  ];
}
