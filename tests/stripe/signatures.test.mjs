// Stripe's own library and this server agree on signatures: each accepts what the other signs, and both refuse the same.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import Stripe from 'stripe';
import { OLD_SECRET, SECRET, openShop, startProvider } from './shop.mjs';

const stripe = new Stripe('sk_test_shop');
const { webhooks } = stripe;
const readRecorded = async (file) => JSON.parse(await readFile(new URL(file, import.meta.url), 'utf8'));

let provider;
let shop;

before(async () => {
  provider = await startProvider((request, _, response) => response.writeHead(404).end('{}'));
  shop = await openShop(provider, { label: 'PDF', amount: 900, currency: 'eur' });
});

after(async () => {
  await shop?.svc.stop();
  provider?.stop();
});

test('the library takes what the provider `dev` signs, and nothing that was changed', async () => {
  const { secret, at, events } = await readRecorded('dev-events.json');
  const now = at * 1000;
  assert.ok(events.length >= 20);
  for (const { type, body, signature } of events) {
    const event = webhooks.constructEvent(body, signature, secret, 300, undefined, now);
    assert.equal(event.type, type);
    assert.equal(event.created, at);
    assert.equal(event.api_version, stripe.getApiField('version'));
    const refused = [
      [body.replace('eur', 'usd'), signature, secret, now],
      [body, signature.replace(/..$/, '00'), secret, now],
      [body, signature, `${secret}x`, now],
      [body, signature, secret, now + 301_000],
    ];
    for (const [body, signature, secret, now] of refused) {
      const verify = () => webhooks.constructEvent(body, signature, secret, 300, undefined, now);
      assert.throws(verify, Stripe.errors.StripeSignatureVerificationError);
    }
  }
});

test('the calls name the version that the library speaks', async () => {
  const { version } = await readRecorded('calls.json');
  assert.equal(version, stripe.getApiField('version'));
});

/** A hosted checkout that was paid, as the library would give it to anybody. */
function paidEvent({ session, checkout }, id) {
  const object = {
    id: checkout,
    object: 'checkout.session',
    mode: 'payment',
    status: 'complete',
    payment_status: 'paid',
    amount_total: 900,
    currency: 'eur',
    metadata: { svc_session: session },
    payment_intent: `pi_of_${checkout}`,
    customer_details: { email: 'ada@example.com' },
  };
  const created = Math.floor(Date.now() / 1000);
  const event = { id, object: 'event', type: 'checkout.session.completed', created, livemode: false, data: { object } };
  return JSON.stringify(event, null, 2);
}

const secondsFromNow = (ahead) => Math.floor(Date.now() / 1000) + ahead;

for (const [what, sign, accepted] of [
  ['now', {}, true],
  ['the older of two secrets', { secret: OLD_SECRET }, true],
  ['a little late', { timestamp: secondsFromNow(-200) }, true],
  ['too late', { timestamp: secondsFromNow(-400) }, false],
  ['another secret', { secret: 'whsec_guessed' }, false],
  ['another scheme', { scheme: 'v0' }, false],
  ['another body', { of: (body) => body.replace('"amount_total": 900', '"amount_total": 901') }, false],
  ['the same words, written otherwise', { of: (body) => JSON.stringify(JSON.parse(body)) }, false],
  ['several signatures', { header: (header) => `${header},v1=${'0'.repeat(64)}` }, true],
  ['a wrong one first', { header: (header) => header.replace(',', `,v1=${'0'.repeat(64)},`) }, true],
  ['an unknown scheme beside it', { header: (header) => `${header},v9=${'0'.repeat(64)}` }, true],
  ['no time', { header: (header) => header.replace(/^t=\d+,/, '') }, false],
  ['no signature', { header: (header) => header.split(',')[0] }, false],
  ['nothing', { header: () => '' }, false],
]) {
  test(`both ${accepted ? 'take' : 'refuse'} what is signed with: ${what}`, async () => {
    const bought = await shop.buy();
    const body = paidEvent(bought, `evt_${bought.checkout}`);
    const { secret = SECRET, timestamp = secondsFromNow(0), scheme = 'v1', of = (it) => it, header = (it) => it } = sign;
    const signature = header(webhooks.generateTestHeaderString({ payload: body, secret, timestamp, scheme }));
    const sent = of(body);
    const library = () => [SECRET, OLD_SECRET].some((secret) => {
      try {
        return webhooks.constructEvent(sent, signature, secret).type;
      } catch (error) {
        assert.ok(error instanceof Stripe.errors.StripeSignatureVerificationError, String(error));
        return false;
      }
    });
    assert.equal(library(), accepted);
    assert.equal(await shop.send(sent, signature), accepted ? 200 : '400 invalid_request');
    assert.equal(await shop.status(bought.session), accepted ? 'paid' : 'open');
  });
}

test('a webhook without a signature is refused', async () => {
  const bought = await shop.buy();
  assert.equal(await shop.send(paidEvent(bought, 'evt_none')), '400 invalid_request');
  assert.equal(await shop.status(bought.session), 'open');
});
