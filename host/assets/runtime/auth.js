  // The visitor.
  svc.auth = {
    // A page that asks who its visitor is goes on with nobody.
    user: () => Promise.resolve(null),
    login: fail('svc.auth.login'),
    logout: refuse('svc.auth.logout'),
    onChange: () => () => {},
  };
