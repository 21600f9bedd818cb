// Live queries of a page, over one socket. Loaded when the page first asks for one.
export const listen = (base, SvcError) => {
  const url = `${location.origin.replace(/^http/, 'ws')}${base}/api/live`;
  const steps = [1, 2, 5, 10, 30];
  const HIDDEN = 60_000;
  const IDLE = 1000;
  // A socket may say so many things at once, and one more after each wait; the server closes one that goes on saying more.
  const BURST = 20;
  const EACH = 125;
  const queries = new Map();
  // Ids of queries that the server knows, and of those that it must hear of: that they are there, or that they have stopped.
  const known = new Set();
  const unsaid = new Set();
  let socket, timer, hidden, idle, left, at, turn;
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
  const speak = () => {
    clearTimeout(turn);
    const now = performance.now();
    left = Math.min(BURST, left + (now - at) / EACH);
    at = now;
    for (const id of unsaid) {
      const query = queries.get(id);
      if (query || known.has(id)) {
        if (left < 1) {
          turn = setTimeout(speak, EACH * (1 - left));
          return;
        }
        left -= 1;
        if (query) known.add(id);
        else known.delete(id);
        socket.send(query ? query.frame : JSON.stringify({ v: 1, type: 'unsubscribe', id }));
      }
      unsaid.delete(id);
    }
  };
  // Has the server told of a query as soon as that may be; one that comes and goes before its turn costs nothing.
  const say = (id) => {
    if (!isOpen()) return;
    unsaid.add(id);
    speak();
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
    if (type === 'error') known.delete(id);
    if (!query) return;
    if (type === 'result') {
      query.step = 0;
      const text = JSON.stringify(frame.result);
      if (text === query.last) return;
      query.last = text;
      tell(query.callback, frame.result);
    } else if (type === 'error') {
      const { code, live_per_socket: most } = frame.problem;
      // A refusal for now is tried again; one of more queries than a socket may have is not.
      const passing = ['rate_limited', 'database_busy', 'capacity_reached', 'interrupted'];
      if (most === undefined && passing.includes(code)) {
        query.timer = setTimeout(say, 1000 + wait(query.step++), id);
        return;
      }
      forget(id);
      tell(query.onError, problem(frame.problem));
    }
  };
  const close = () => {
    clearTimeout(timer);
    clearTimeout(turn);
    timer = undefined;
    socket?.close(1000);
    socket = undefined;
  };
  const forget = (id) => {
    clearTimeout(queries.get(id)?.timer);
    queries.delete(id);
    if (queries.size) return;
    // A page that stops its last query often starts the next one at once.
    clearTimeout(idle);
    idle = setTimeout(leave, IDLE);
  };
  const leave = () => {
    close();
    document.removeEventListener('visibilitychange', look);
    clearTimeout(hidden);
  };
  const connect = () => {
    clearTimeout(timer);
    timer = undefined;
    let opened = false;
    const mine = (socket = new WebSocket(url));
    mine.onopen = () => {
      if (mine !== socket) return;
      opened = true;
      step = refused = 0;
      left = BURST;
      at = performance.now();
      known.clear();
      unsaid.clear();
      for (const id of queries.keys()) unsaid.add(id);
      speak();
    };
    mine.onmessage = (message) => mine === socket && hear(message);
    mine.onclose = ({ code, reason }) => {
      if (mine !== socket) return;
      socket = undefined;
      clearTimeout(turn);
      for (const query of queries.values()) clearTimeout(query.timer);
      if (code === 1008) {
        const ended = [...queries];
        for (const [id, { onError }] of ended) {
          forget(id);
          tell(onError, new SvcError('closed', `The server has closed the connection: ${reason}.`));
        }
        return;
      }
      if (code === 1009) {
        // The one frame that can be too large is the longest of those that were said.
        const said = [...queries].filter(([id]) => known.has(id));
        const [longest] = said.sort(([, one], [, other]) => other.frame.length - one.frame.length);
        if (longest) {
          forget(longest[0]);
          tell(longest[1].onError, new SvcError('payload_too_large', 'The params are larger than a frame may be.', 413));
        }
      }
      if (!opened && ++refused === 5) {
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
      if (!socket && queries.size) connect();
    } else {
      hidden = setTimeout(close, HIDDEN);
    }
  };
  return (action, params, callback, onError) => {
    const id = String(++next);
    const frame = JSON.stringify({ v: 1, type: 'subscribe', id, action, params });
    queries.set(id, { frame, callback, onError, step: 0 });
    clearTimeout(idle);
    if (isOpen()) {
      say(id);
    } else if (!socket && timer === undefined) {
      document.addEventListener('visibilitychange', look);
      connect();
      look();
    }
    return () => {
      if (!queries.has(id)) return;
      forget(id);
      say(id);
    };
  };
};
