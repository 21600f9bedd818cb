  // Rooms: a WebSocket each, opened again whenever it is lost.
  const steps = [1, 2, 5, 10, 30];
  const events = ['open', 'message', 'presence', 'join', 'leave', 'close', 'error'];
  const room = (id, { reconnect = true, identify } = {}) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$/.test(id)) {
      throw new SvcError('invalid_room', 'A room has 1 to 64 characters of A-Z, a-z, 0-9 and ._~-, the first a letter or a digit.');
    }
    const url = `${location.origin.replace(/^http/, 'ws')}${base}/ws?room=${encodeURIComponent(id)}${identify ? '&identify=true' : ''}`;
    const listeners = new Map(events.map((name) => [name, new Set()]));
    let state = 'connecting';
    let socket, timer;
    // Members of the room, in the order of joining.
    let list = [];
    // Attempts since the room was last open, and those that were refused.
    let step = 0;
    let refused = 0;
    // A listener that throws keeps no other from hearing.
    const emit = (name, event) => {
      for (const listener of [...listeners.get(name)]) {
        try {
          listener(event);
        } catch (error) {
          setTimeout(() => { throw error; });
        }
      }
    };
    const hear = ({ data: text }) => {
      let event;
      try {
        event = JSON.parse(text);
      } catch {
        return;
      }
      if (!event.type.startsWith('svc:')) return emit('message', event);
      const { data } = event;
      const name = event.type.slice(4);
      if (name === 'welcome') {
        state = 'open';
        step = refused = 0;
        list = data.list ?? [];
        emit('open', data);
      } else if (name === 'error') {
        emit('error', Object.assign(new SvcError(data.code, data.detail), data));
      } else if (listeners.has(name)) {
        if (name !== 'presence') list = list.filter((member) => member.client_id !== data.client_id);
        if (name === 'join') list.push(data);
        emit(name, { ...event, ...data, ...(name === 'presence' && { list: [...list] }) });
      }
    };
    const connect = () => {
      clearTimeout(timer);
      timer = undefined;
      const mine = (socket = new WebSocket(url));
      mine.onmessage = (message) => mine === socket && hear(message);
      mine.onclose = ({ code, reason }) => {
        if (mine !== socket) return;
        socket = undefined;
        list = [];
        const was = state;
        const again = reconnect && state !== 'closed' && code !== 1008;
        state = again ? 'connecting' : 'closed';
        if (!again) document.removeEventListener('visibilitychange', wake);
        if (was !== 'connecting') emit('close', { code, reason });
        else if (!again) emit('close', { code, reason });
        else if (++refused === 5) emit('error', new SvcError('unreachable', `The room ${id} cannot be reached.`));
        if (state !== 'connecting') return;
        if (code === 1013 && step < 3) step = 3;
        timer = setTimeout(connect, Math.random() * 1000 * steps[Math.min(step++, 4)]);
      };
    };
    // A page that comes back to the foreground does not wait.
    const wake = () => {
      if (timer !== undefined && document.visibilityState === 'visible') connect();
    };
    document.addEventListener('visibilitychange', wake);
    connect();
    return Object.freeze({
      id,
      get state() {
        return state;
      },
      get members() {
        return [...list];
      },
      send(type, data = null, clientMessageId) {
        if (state !== 'open' || socket.readyState !== 1) return false;
        socket.send(JSON.stringify({ v: 1, type, data, client_message_id: clientMessageId }));
        return true;
      },
      on(name, listener) {
        if (!listeners.has(name)) throw new TypeError(`A room has no event ${name}.`);
        listeners.get(name).add(listener);
        return () => listeners.get(name).delete(listener);
      },
      close() {
        if (state === 'closed') return;
        state = 'closed';
        list = [];
        clearTimeout(timer);
        timer = undefined;
        document.removeEventListener('visibilitychange', wake);
        if (socket) socket.close(1000);
        else emit('close', { code: 1000, reason: '' });
      },
    });
  };
  svc.ws = { room };
