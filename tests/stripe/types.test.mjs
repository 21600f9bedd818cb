// Every parameter that is sent, and every object that the provider `dev` makes, against Stripe's published description: the types of
// its library are made from that, for the version that the calls name.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import ts from 'typescript';

const here = fileURLToPath(new URL('.', import.meta.url));
const readRecorded = async (file) => JSON.parse(await readFile(join(here, file), 'utf8'));

// The library takes any text where the description lists some: here only those that are listed count.
const HEAD = `import type Stripe from 'stripe';
type Listed<T> = T extends string ? (string extends T ? never : T) : never;
type Closed<T> = [Listed<T>] extends [never] ? T : Listed<T> | Exclude<T, string>;
type Whole<T> = T extends (infer One)[] ? Whole<One>[] : T extends object ? { [Name in keyof T]: Whole<Closed<T[Name]>> } : T;
type Part<T> = T extends (infer One)[] ? Part<One>[] : T extends object ? { [Name in keyof T]?: Part<Closed<T[Name]>> } : T;
type About<Type extends Stripe.Event['type']> = Part<Extract<Stripe.Event, { type: Type }>['data']['object']>;
`;

/** The parameters of each call. */
const PARAMETERS = new Map([
  [/^\/v1\/checkout\/sessions$/, 'Stripe.Checkout.SessionCreateParams'],
  [/^\/v1\/checkout\/sessions\/\w+\/expire$/, 'Stripe.Checkout.SessionExpireParams'],
  [/^\/v1\/billing_portal\/sessions$/, 'Stripe.BillingPortal.SessionCreateParams'],
  [/^\/v1\/subscriptions\/\w+$/, 'Stripe.SubscriptionUpdateParams'],
]);

/** A form as the document that it stands for: `a[0][b]=1` is `{ a: [{ b: 1 }] }`. */
function unfoldForm(form) {
  const value = (text) => (/^(\d+|true|false)$/.test(text) ? JSON.parse(text) : text);
  const whole = {};
  for (const [name, text] of Object.entries(form)) {
    const path = name.split(/[[\]]+/).filter(Boolean);
    let at = whole;
    path.forEach((part, depth) => {
      const next = path[depth + 1];
      at = at[part] ??= next === undefined ? value(text) : /^\d+$/.test(next) ? [] : {};
    });
  }
  return whole;
}

/** What the compiler says of a text. */
function typeErrors(text) {
  const name = join(here, 'checked.ts');
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { readFile: read, fileExists: exists, getSourceFile: source } = host;
  host.readFile = (file) => (file === name ? text : read(file));
  host.fileExists = (file) => file === name || exists(file);
  host.getSourceFile = (file, version, ...rest) =>
    file === name ? ts.createSourceFile(file, text, version) : source(file, version, ...rest);
  const program = ts.createProgram([name], options, host);
  const found = ts.getPreEmitDiagnostics(program);
  return found.map(({ messageText, start, file }) => {
    const line = file && start !== undefined ? text.split('\n')[file.getLineAndCharacterOfPosition(start).line] : '';
    return `${ts.flattenDiagnosticMessageText(messageText, ' ')} ${line.trim()}`;
  });
}

const { calls } = await readRecorded('calls.json');
const { events } = await readRecorded('dev-events.json');
const constant = (name, type, value) => `export const ${name}: ${type} = ${JSON.stringify(value, null, 1)};`;
const lines = [
  ...calls.map(({ path, form }, number) => {
    const [, type] = [...PARAMETERS].find(([of]) => of.test(path)) ?? assert.fail(`${path} is not described`);
    return constant(`call${number}`, `Whole<${type}>`, unfoldForm(form));
  }),
  ...events.map(({ type, body }, number) => constant(`event${number}`, `About<'${type}'>`, JSON.parse(body).data.object)),
];

test('every parameter and every object is one that the provider describes', () => {
  assert.ok(calls.length >= 6);
  assert.deepEqual(typeErrors([HEAD, ...lines].join('\n')), []);
});

test('what the provider does not describe is noticed', () => {
  const wrong = [
    ['call', 'Whole<Stripe.Checkout.SessionCreateParams>', { mode: 'payments' }],
    ['call', 'Whole<Stripe.Checkout.SessionCreateParams>', { adaptive_pricing: { enable: false } }],
    ['call', 'Whole<Stripe.Checkout.SessionCreateParams>', { line_items: [{ price_data: { currency: 'eur', unit_amount: '900' } }] }],
    ['call', 'Whole<Stripe.SubscriptionUpdateParams>', { cancel_at_close: true }],
    ['call', 'Whole<Stripe.Checkout.SessionCreateParams>', { line_items: [{ price_data: { unit_amount: 900 } }] }],
    ['event', "About<'invoice.paid'>", { parent: { subscription: 'sub_1' } }],
    ['event', "About<'charge.refunded'>", { refunded: 'yes' }],
    ['event', "About<'checkout.session.completed'>", { payment_status: 'settled' }],
  ];
  const text = wrong.map(([name, type, value], number) => constant(`${name}${number}`, type, value));
  const found = typeErrors([HEAD, ...text].join('\n'));
  assert.equal(found.length, wrong.length, found.join('\n'));
});
