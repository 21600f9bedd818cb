  // Purchases. A second click while the first is under way is the same purchase.
  const buying = new Map();
  const here = () => location.pathname + location.search + location.hash;
  svc.payments = {
    checkout(price, { returnTo = here() } = {}) {
      if (!buying.has(price)) {
        const begun = call('/payments/checkout', { price, return_to: returnTo }).then(({ url }) => {
          location.assign(url);
          return new Promise(() => {});
        });
        buying.set(price, begun);
        begun.catch(() => buying.delete(price));
      }
      return buying.get(price);
    },
    catalog: () => call('/payments/catalog', undefined, 'GET').then(({ prices }) => prices),
    status: () => call('/payments/status', undefined, 'GET'),
  };
  // A page that is shown again as it was has nothing under way.
  addEventListener('pageshow', () => buying.clear());
