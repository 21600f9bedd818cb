  for (const part of Object.values(svc)) if (typeof part === 'object') Object.freeze(part);
  Object.defineProperty(window, 'svc', { value: Object.freeze(svc), enumerable: true });
})();
