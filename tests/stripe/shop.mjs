// A project that sells something, at a provider of the tests' own, and what is asked of both.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as rest } from 'node:timers/promises';
import { startSvc } from '../browser/lib/svc.mjs';

export const SECRET = 'whsec_of_now';
export const OLD_SECRET = 'whsec_of_yesterday';

/** Waits until something is there; answers it. */
export async function waitUntil(what, look) {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await rest(100);
  }
}

/**
 * A provider that makes hosted checkouts and keeps what each was made of; every other call is `otherwise`'s.
 */
export async function startProvider(otherwise) {
  const checkouts = new Map();
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    if (request.url !== '/v1/checkout/sessions') return otherwise(request, body, response);
    const id = `cs_test_${checkouts.size + 1}`;
    checkouts.set(id, Object.fromEntries(new URLSearchParams(body)));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id, object: 'checkout.session', url: `http://127.0.0.1:9/pay/${id}` }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, checkouts, stop: () => server.close() };
}

/** Starts a server that knows a provider, with a project, its page, and a price. */
export async function openShop(provider, price) {
  const secrets = [SECRET, OLD_SECRET].map((secret) => `'${secret}'`).join(', ');
  const tables = ['[stripe]', "secret_key = 'sk_test_shop'", `webhook_secret = [${secrets}]`, `api_base = '${provider.url}'`];
  const svc = await startSvc({ tables });
  const ask = await svc.owner('acme');
  const { id: project } = await ask('POST', '', { name: 'Shop' });
  const { id: priceId } = await ask('POST', `/${project}/payments/catalog`, { product_name: 'Handbook', ...price });
  await ask('POST', `/${project}/frontends`, { type: 'markdown', content: '# Shop', requested_slug: 'shop' });
  return {
    svc,
    project,
    ask,
    /** Begins a checkout; answers the session and the provider's id of its page. */
    async buy() {
      const headers = { accept: 'application/json', 'content-type': 'application/json' };
      const body = JSON.stringify({ price: priceId });
      const answer = await fetch(`${svc.url}/shop/payments/checkout`, { method: 'POST', headers, body });
      assert.equal(answer.status, 200);
      const begun = await answer.json();
      return { session: begun.session_id, checkout: begun.url.split('/').pop() };
    },
    /** What has become of a session. */
    async status(session) {
      const { sessions } = await ask('GET', `/${project}/payments/sessions`);
      return sessions.find(({ id }) => id === session)?.status;
    },
    /** Sends a webhook as it is; answers the status, and the code where it was refused. */
    async send(body, signature) {
      const headers = { 'content-type': 'application/json; charset=utf-8' };
      if (signature !== undefined) headers['stripe-signature'] = signature;
      const answer = await fetch(`${svc.url}/_svc/webhooks/stripe`, { method: 'POST', headers, body });
      const said = await answer.json();
      return answer.ok ? 200 : `${answer.status} ${said.code}`;
    },
  };
}
