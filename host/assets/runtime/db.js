  // Actions of the backend. What live queries need is loaded with the first of them.
  let listening;
  const live = (action, params = {}, callback, { onError } = {}) => {
    let stop;
    let stopped = false;
    listening ??= import('LIVE_PATH').then(({ listen }) => listen(base, SvcError));
    listening.then(
      (listen) => {
        if (!stopped) stop = listen(action, params, callback, onError);
      },
      (error) => {
        listening = undefined;
        if (!stopped) onError?.(new SvcError('unreachable', String(error)));
      },
    );
    return () => {
      stopped = true;
      stop?.();
    };
  };
  svc.db = {
    op: (action, params = {}) => call('/api/op', { action, params }),
    batch: async (ops) => (await call('/api/op', { ops })).results,
    live,
  };
