  // The visitor: asked for once, and known to the other tabs of this page.
  const signed = new Set();
  const tabs = 'BroadcastChannel' in window ? new BroadcastChannel(`svc.auth/${slug}`) : { postMessage() {} };
  let asked, last;
  const tell = (user) => {
    const now = JSON.stringify(user);
    if (now === last) return;
    const first = last === undefined;
    last = now;
    if (first) return;
    for (const listener of [...signed]) {
      try {
        listener(user);
      } catch (error) {
        setTimeout(() => { throw error; });
      }
    }
  };
  const ask = async () => {
    try {
      const status = () => fetch(`${base}/auth/status`);
      let response = await status();
      // While another server takes over nobody knows, for some seconds.
      for (let more = 15; more > 0 && response.status === 503 && waits(response) === 1; more -= 1) {
        await new Promise((wake) => setTimeout(wake, 1000));
        response = await status();
      }
      const { user } = await response.json();
      if (!response.ok || !user) return null;
      const { expires_at: expiresAt, ...rest } = user;
      return Object.freeze({ ...rest, expiresAt });
    } catch {
      return null;
    }
  };
  const user = ({ refresh } = {}) => {
    if (refresh || !asked) {
      const mine = (asked = ask());
      // Only the newest answer counts, whichever comes last.
      mine.then((found) => mine === asked && tell(found));
    }
    return asked;
  };
  tabs.onmessage = () => user({ refresh: true });
  // A page that is shown again as it was may be somebody else's by now.
  addEventListener('pageshow', ({ persisted }) => persisted && asked && user({ refresh: true }));
  // Storage is refused to pages without an origin of their own.
  const mark = `svc.auth/${slug}`;
  try {
    if (sessionStorage.getItem(mark)) {
      sessionStorage.removeItem(mark);
      tabs.postMessage(0);
    }
  } catch {}
  svc.auth = {
    user,
    login({ provider, returnTo = location.pathname + location.search + location.hash } = {}) {
      const query = new URLSearchParams({ return_to: returnTo });
      if (provider) query.set('provider', provider);
      try {
        sessionStorage.setItem(mark, 1);
      } catch {}
      location.assign(`${base}/auth/login?${query}`);
    },
    async logout() {
      await call('/auth/logout');
      asked = Promise.resolve(null);
      tell(null);
      tabs.postMessage(0);
    },
    onChange(listener) {
      signed.add(listener);
      user();
      return () => signed.delete(listener);
    },
  };
