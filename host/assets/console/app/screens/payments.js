// What the project sells, and who went to pay.
import { useState } from 'preact/hooks';
import { call } from 'app/api.js';
import { useDraft, useLoad, useRun } from 'app/load.js';
import { Ask, Button, Fault, Field, Form, Loaded, Screen, Table, Text, Time, html, options, say } from 'app/ui.js';

/** An amount in its currency; what no browser knows is told in minor units. */
function money(amount, currency) {
  try {
    const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
    return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
  } catch {
    return `${amount} ${currency}`;
  }
}

const load = async (project) => {
  const [catalog, sessions] = await Promise.all([call('list_catalog', { project }), call('list_sessions', { project, query: { limit: 500 } })]);
  return { products: catalog.products, sessions: sessions.sessions };
};

const often = (price) => (price.recurring ? `every ${price.interval ?? 'month'}` : 'once');

function Prices({ project, products, onDone }) {
  const [ending, end] = useState(null);
  const rows = products.flatMap((product) =>
    product.prices.map((price) => html`<tr key=${price.id}><th scope="row"><${Text} of=${product.name} /></th><td><${Text} of=${price.label} /></td><td class="number">${money(price.amount, price.currency)}</td><td>${often(price)}</td><td><code>${price.key ?? price.id}</code></td><td>${price.active ? html`<span class="tag good">on sale</span>` : html`<span class="tag">withdrawn</span>`}</td>
      <td>${price.active && html`<${Button} class="small" needs="editor" onClick=${() => end({ ...price, product })}>Withdraw</${Button}>`}</td></tr>`),
  );
  return html`<section><h2>Prices</h2><${Table} caption="Prices" numbers=${[2]} columns=${['Product', 'Label', 'Amount', 'Paid', 'Key', 'State', html`<span class="hidden">Actions</span>`]} rows=${rows} empty=${html`<h3>Nothing is for sale yet</h3><p>Add a price below, with <code>svc price add</code>, or have an agent call <code>manage_payments</code>. A page sells it with <code>svc.payments.checkout("key")</code>.</p>`} />
    ${ending && html`<${Ask} title="Withdraw" onClose=${() => end(null)} work=${async () => {
      await call('deactivate_price', { project, price: ending.id });
      await onDone();
      say('Withdrew the price.');
    }}><p>Nobody can buy <strong><${Text} of=${ending.product.name} />, <${Text} of=${ending.label} /></strong> any more. Who has bought it keeps it.</p></${Ask}>`}</section>`;
}

function Add({ project, onDone }) {
  const [product, setProduct, dropProduct] = useDraft(`${project}:price:product`);
  const [label, setLabel, dropLabel] = useDraft(`${project}:price:label`);
  const [amount, setAmount, dropAmount] = useDraft(`${project}:price:amount`);
  const [currency, setCurrency] = useDraft(`${project}:price:currency`, 'eur');
  const [key, setKey, dropKey] = useDraft(`${project}:price:key`);
  const [recurring, setRecurring] = useState('');
  const add = useRun(async () => {
    const body = { product_name: product, label, amount: Number(amount), currency: currency.trim(), key: key || undefined, recurring: Boolean(recurring), interval: recurring === 'year' ? 'year' : undefined };
    const price = await call('add_price', { project, body });
    for (const drop of [dropProduct, dropLabel, dropAmount, dropKey]) drop();
    await onDone();
    say(`Added ${price.product.name}, ${price.label}.`);
  });
  const amountText = /^\d+$/.test(amount) && /^[a-z]{3}$/i.test(currency) ? `That is ${money(Number(amount), currency)}.` : 'In the smallest unit, such as cents.';
  return html`<section class="card"><h2>A new price</h2><${Form} onSubmit=${add.run}>
    <div class="pair"><${Field} label="Product name" value=${product} onInput=${setProduct} required maxlength="200" needs="editor" hint="Prices of one name share a product." autocomplete="off" /><${Field} label="Label" value=${label} onInput=${setLabel} required maxlength="200" needs="editor" hint="What is bought of it, or for how long." autocomplete="off" /></div>
    <div class="pair"><${Field} label="Amount" value=${amount} onInput=${setAmount} required inputmode="numeric" pattern="[1-9][0-9]*" needs="editor" hint=${amountText} autocomplete="off" /><${Field} label="Currency" value=${currency} onInput=${setCurrency} required pattern="[A-Za-z]{3}" needs="editor" hint="As in ISO 4217, such as eur." autocomplete="off" /></div>
    <div class="pair"><${Field} label="Recurring" as="select" value=${recurring} onInput=${setRecurring} needs="editor">${options([['', 'Once'], ['month', 'Every month'], ['year', 'Every year']])}</${Field}><${Field} label="Key" value=${key} onInput=${setKey} pattern="[a-z][a-z0-9_\\-]{0,63}" needs="editor" hint="By which pages ask for it. An id is made in any case." autocomplete="off" /></div>
    <${Fault} of=${add.problem} />
    <div class="actions"><${Button} type="submit" class="main" needs="editor" busy=${add.busy}>Add price</${Button}></div></${Form}></section>`;
}

const verdicts = { paid: 'good', refunded: 'bad', failed: 'bad', canceled: '', open: 'new' };

function Sessions({ sessions }) {
  const [status, setStatus] = useState('');
  const sums = new Map();
  for (const one of sessions) if (one.status === 'paid') sums.set(one.currency, (sums.get(one.currency) ?? 0) + one.amount);
  const shown = sessions.filter((one) => !status || one.status === status);
  const rows = shown.map((one) => html`<tr key=${one.id}><th scope="row"><${Text} of=${one.price_label} /></th><td class="number">${money(one.amount, one.currency)}</td><td><span class=${`tag ${verdicts[one.status] ?? ''}`}>${one.status}</span></td><td><${Text} of=${one.email ?? one.user_id ?? ''} /></td><td><${Time} at=${one.created_at} /></td><td><code>${one.id}</code></td></tr>`);
  return html`<section><h2>Sessions</h2><p class="quiet">${sums.size ? `Paid: ${[...sums].map(([currency, sum]) => money(sum, currency)).join(', ')}${sessions.length === 500 ? ', of the newest 500' : ''}` : 'Nothing was paid yet.'}</p>
    ${sessions.length > 0 && html`<${Field} label="Verdict" as="select" value=${status} onInput=${setStatus}>${options([['', 'All'], ...Object.keys(verdicts).map((one) => [one, one])])}</${Field}>`}
    <${Table} caption="Sessions" numbers=${[1]} columns=${['What', 'Amount', 'Verdict', 'Who', 'Begun', 'Session']} rows=${rows} empty=${html`<p>Nobody went to pay yet. Under <code>serve --dev</code> a checkout is played, and <code>svc dev payment refund SESSION</code> does what the world would.</p>`} /></section>`;
}

export function Payments({ project, about }) {
  const all = useLoad(`payments:${project}`, () => load(project));
  return html`<${Screen} title="Payments" about=${about}>
    <${Loaded} load=${all}>${({ products, sessions }) => html`<${Prices} project=${project} products=${products} onDone=${all.reload} /><${Add} project=${project} onDone=${all.reload} /><${Sessions} sessions=${sessions} />`}</${Loaded}>
  </${Screen}>`;
}
