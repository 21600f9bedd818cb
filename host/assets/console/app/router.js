// Where the reader is, and what that address is still waiting for.
import { batch, computed, signal } from '@preact/signals-core';

const here = () => ({ path: location.pathname, search: location.search, hash: location.hash });

export const address = signal(here());
/** How many answers the screen is waiting for before it is shown as it is. */
const pending = signal(0);
/** Whether the screen of the address is still on its way. */
export const arriving = signal(true);
export const isBusy = computed(() => arriving.value || pending.value > 0);
/** Whether the next screen is one that somebody went to: its heading takes the focus then. */
export const travelled = { yes: false };

/** Says that an answer is awaited; what it answers is called once, when there is nothing to wait for any more. */
export function begin() {
  pending.value = pending.peek() + 1;
  let isOver = false;
  return () => {
    if (!isOver) pending.value = pending.peek() - 1;
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
