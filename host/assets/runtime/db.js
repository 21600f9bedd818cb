  // Actions of the backend.
  svc.db = {
    op: (action, params = {}) => call('/api/op', { action, params }),
    batch: async (ops) => (await call('/api/op', { ops })).results,
  };
