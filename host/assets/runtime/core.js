// The runtime of a page: `svc` on window. One classic script, first in the head, put together from this file's folder.
(() => {
  'use strict';
  // The server fills in both: from the script's own element, or for the site that asked for it.
  const slug = MOUNT_SLUG;
  const base = MOUNT_BASE;
  class SvcError extends Error {
    constructor(code, message, status = 0, details, retryAfter) {
      super(message);
      this.name = 'SvcError';
      this.code = code;
      this.status = status;
      this.details = details;
      this.retryAfter = retryAfter;
    }
  }
  const missing = (what) =>
    new SvcError('not_available', `${what} is not available on this server.`, 501);
  const refuse = (what) => () => Promise.reject(missing(what));
  const waits = (response) => Number(response.headers.get('Retry-After')) || undefined;
  // Calls this page's own routes; every failure is an SvcError.
  const call = async (path, body, method = 'POST') => {
    let response, answer;
    try {
      response = await fetch(`${base}${path}`, {
        method,
        headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      answer = response.status === 204 ? null : await response.json();
    } catch (error) {
      throw new SvcError('unreachable', String(error), response ? response.status : 0);
    }
    if (response.ok) return answer;
    const { code = 'internal', detail = response.statusText } = answer || {};
    throw new SvcError(code, detail, response.status, answer, waits(response));
  };
  const svc = { slug, SvcError };
