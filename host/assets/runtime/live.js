// Live queries of a page, over one socket. Loaded when the page first asks for one.
export const listen = (slug, SvcError) => {
  const url = `${location.origin.replace(/^http/, 'ws')}/${slug}/api/live`;
  const steps = [1, 2, 5, 10, 30];
  const HIDDEN = 60_000;
  const queries = new Map();
  let socket, timer, hidden;
  let next = 0;
  // Attempts since the socket was last open, and those that were refused.
  let step = 0;
  let refused = 0;
  const wait = (step) => Math.random() * 1000 * steps[Math.min(step, 4)];
  // A callback that throws keeps no other from being called.
  const tell = (callback, value) => {
    try {
      callback?.(value);
    } catch (error) {
      setTimeout(() => { throw error; });
    }
  };
  const isOpen = () => socket?.readyState === 1;
  const say = (frame) => isOpen() && socket.send(JSON.stringify({ v: 1, ...frame }));
  const ask = (id) => {
    const query = queries.get(id);
    clearTimeout(query?.timer);
    if (query) say({ type: 'subscribe', id, action: query.action, params: query.params });
  };
  const problem = ({ code, detail, status, ...more }) =>
    new SvcError(code, detail, status, { code, detail, status, ...more });
  const hear = ({ data }) => {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    const { type, id } = frame;
    const query = queries.get(id);
    if (!query) return;
    if (type === 'result') {
      query.step = 0;
      const text = JSON.stringify(frame.result);
      if (text === query.last) return;
      query.last = text;
      tell(query.callback, frame.result);
    } else if (type === 'error') {
      if (['rate_limited', 'database_busy', 'capacity_reached'].includes(frame.problem.code)) {
        query.timer = setTimeout(ask, 1000 + wait(query.step++), id);
        return;
      }
      forget(id);
      tell(query.onError, problem(frame.problem));
    }
  };
  const close = () => {
    clearTimeout(timer);
    timer = undefined;
    socket?.close(1000);
    socket = undefined;
  };
  const forget = (id) => {
    clearTimeout(queries.get(id)?.timer);
    queries.delete(id);
    if (queries.size) return;
    close();
    document.removeEventListener('visibilitychange', look);
    clearTimeout(hidden);
  };
  const connect = () => {
    clearTimeout(timer);
    timer = undefined;
    const mine = (socket = new WebSocket(url));
    mine.onopen = () => {
      if (mine !== socket) return;
      step = refused = 0;
      for (const id of queries.keys()) ask(id);
    };
    mine.onmessage = (message) => mine === socket && hear(message);
    mine.onclose = ({ code, reason }) => {
      if (mine !== socket) return;
      socket = undefined;
      for (const query of queries.values()) clearTimeout(query.timer);
      if (code === 1008) {
        const ended = [...queries];
        for (const [id, { onError }] of ended) {
          forget(id);
          tell(onError, new SvcError('closed', `The server has closed the connection: ${reason}.`));
        }
        return;
      }
      if (code === 1006 && ++refused === 5) {
        for (const { onError } of [...queries.values()]) {
          tell(onError, new SvcError('unreachable', 'Live queries cannot be reached.'));
        }
      }
      if (code === 1013 && step < 3) step = 3;
      if (queries.size) timer = setTimeout(connect, wait(step++));
    };
  };
  // Nobody looks at a hidden page: after a while it lets go, and takes up again at once when it is looked at.
  const look = () => {
    clearTimeout(hidden);
    if (document.visibilityState === 'visible') {
      if (!socket) connect();
    } else {
      hidden = setTimeout(close, HIDDEN);
    }
  };
  return (action, params, callback, onError) => {
    const id = String(++next);
    queries.set(id, { action, params, callback, onError, step: 0 });
    if (isOpen()) {
      ask(id);
    } else if (!socket && timer === undefined) {
      document.addEventListener('visibilitychange', look);
      connect();
      look();
    }
    return () => {
      if (!queries.has(id)) return;
      say({ type: 'unsubscribe', id });
      forget(id);
    };
  };
};
