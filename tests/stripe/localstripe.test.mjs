// A stand-in of the provider that others wrote, as server: its subscriptions, invoices and webhooks. It has no hosted checkouts, so
// that what a visitor does on such a page is done here by its API.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import Stripe from 'stripe';
import { SECRET, openShop, startProvider, waitUntil } from './shop.mjs';

const python = process.env.LOCALSTRIPE_PYTHON;
const skip = !python && 'LOCALSTRIPE_PYTHON names no Python with `localstripe`';

let stand;
let base;
let stripe;
let provider;
let shop;

before(async () => {
  if (skip) return;
  stand = spawn(python, [fileURLToPath(new URL('stand_in.py', import.meta.url))], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(stand, 'exit').then(() => Promise.reject(new Error('localstripe ended before it served')));
  const [port] = await Promise.race([once(createInterface(stand.stdout), 'line'), ended]);
  ended.catch(() => {});
  base = `http://127.0.0.1:${port}`;
  stripe = new Stripe('sk_test_shop', { host: '127.0.0.1', port: Number(port), protocol: 'http', maxNetworkRetries: 0 });
  // What this server asks goes on to the stand-in as it is.
  provider = await startProvider(async (request, body, response) => {
    const { host, connection, 'content-length': length, ...headers } = request.headers;
    const answer = await fetch(base + request.url, { method: request.method, headers, body: body || undefined });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  shop = await openShop(provider, { label: 'Monthly', amount: 900, currency: 'eur', recurring: true });
  const hook = { url: `${shop.svc.url}/_svc/webhooks/stripe`, secret: SECRET };
  const registered = await fetch(`${base}/_config/webhooks/shop`, { method: 'POST', body: JSON.stringify(hook) });
  assert.equal(registered.status, 200);
});

after(async () => {
  await shop?.svc.stop();
  provider?.stop();
  stand?.kill();
});

/** Subscribes as the form of a hosted checkout says, with a card that is good, and says that the checkout is complete. */
async function pay({ checkout }) {
  const form = provider.checkouts.get(checkout);
  const price = (name) => form[`line_items[0][price_data]${name}`];
  assert.equal(form.mode, 'subscription');
  const plan = await stripe.plans.create({
    amount: Number(price('[unit_amount]')),
    currency: price('[currency]'),
    interval: price('[recurring][interval]'),
    product: { name: price('[product_data][name]') },
  });
  const card = { number: '4242424242424242', exp_month: 12, exp_year: 2034, cvc: '123' };
  const method = await stripe.paymentMethods.create({ type: 'card', card });
  const customer = await stripe.customers.create({
    email: 'ada@example.com',
    payment_method: method.id,
    invoice_settings: { default_payment_method: method.id },
  });
  const metadata = { svc_session: form['subscription_data[metadata][svc_session]'] };
  const subscription = await stripe.subscriptions.create({ customer: customer.id, items: [{ plan: plan.id }], metadata });
  assert.equal(subscription.status, 'active');
  const invoice = await stripe.invoices.retrieve(subscription.latest_invoice);
  const object = {
    id: checkout,
    object: 'checkout.session',
    mode: form.mode,
    status: 'complete',
    payment_status: invoice.status,
    amount_total: invoice.total,
    currency: invoice.currency,
    metadata: { svc_session: form['metadata[svc_session]'] },
    client_reference_id: form.client_reference_id,
    customer: customer.id,
    customer_details: { email: customer.email },
    subscription: subscription.id,
    invoice: invoice.id,
  };
  const created = Math.floor(Date.now() / 1000);
  const event = { id: `evt_${checkout}`, object: 'event', type: 'checkout.session.completed', created, data: { object } };
  const body = JSON.stringify(event);
  const signature = stripe.webhooks.generateTestHeaderString({ payload: body, secret: SECRET });
  assert.equal(await shop.send(body, signature), 200);
  return subscription;
}

/** Waits until the ledger has these types of events of a session. */
async function waitForEvents(session, ...kinds) {
  await waitUntil(`${kinds} of ${session}`, async () => {
    const { events } = await shop.svc.operate('payments', 'events', shop.project);
    const types = events.filter((event) => event.session === session).map((event) => event.type);
    return kinds.every((kind) => types.includes(kind));
  });
}

test('it has no hosted checkouts', { skip }, async () => {
  const headers = { authorization: 'Bearer sk_test_shop' };
  const answer = await fetch(`${base}/v1/checkout/sessions`, { method: 'POST', headers, body: 'mode=payment' });
  assert.equal(answer.status, 404, 'it has them now: let it serve the whole checkout');
});

test('a subscription is paid by its first invoice, and lasts until it is deleted', { skip }, async () => {
  const bought = await shop.buy();
  const subscription = await pay(bought);
  await waitForEvents(bought.session, 'customer.subscription.created', 'invoice.payment_succeeded');
  assert.equal(await shop.status(bought.session), 'paid');
  await stripe.subscriptions.cancel(subscription.id);
  await waitForEvents(bought.session, 'customer.subscription.deleted');
  assert.equal(await shop.status(bought.session), 'canceled');
});

test('deleting the project ends the subscriptions that live', { skip }, async () => {
  const bought = await shop.buy();
  const subscription = await pay(bought);
  await waitForEvents(bought.session, 'customer.subscription.created');
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).cancel_at_period_end, false);
  await shop.ask('DELETE', `/${shop.project}`);
  await waitUntil('the subscription to end with its period', async () => {
    const found = await stripe.subscriptions.retrieve(subscription.id);
    return found.cancel_at_period_end;
  });
});
