  // Purchases.
  svc.payments = { checkout: refuse('svc.payments'), status: refuse('svc.payments') };
