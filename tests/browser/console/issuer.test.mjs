// Users of an issuer in the console: authorization code with PKCE at a certified provider, and what may go wrong on the way.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import Provider from 'oidc-provider';
import { button, field, link, settle, startConsole, table } from '../lib/console.mjs';

const audience = 'https://svc.example';
let service, server, issuer;

before(async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${server.address().port}`;
  const tables = ['[oauth]', `issuer = "${issuer}"`, `audience = "${audience}"`, 'scopes = ["svc"]', '[console]', 'client_id = "console"'];
  // The provider needs the console's address, and the server the provider's: it is asked when somebody signs in.
  service = await startConsole({ tables });
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'console', redirect_uris: [`${service.origin}/callback`], grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'none' }],
    scopes: ['openid', 'svc'],
    clientBasedCORS: (_, origin) => origin === service.origin,
    pkce: { required: () => true },
    ttl: { AccessToken: 3600 },
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ audience, scope: 'svc', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
      },
    },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  });
  server.on('request', provider.callback());
});
after(async () => {
  await service?.stop();
  server?.closeAllConnections();
  server?.close();
});

/** Opens a console that may ask the issuer, too. */
async function open() {
  const opened = await service.open({ key: null });
  opened.allow(`request to ${issuer}`, '127.0.0.1');
  const { page } = opened;
  await opened.visit('/login');
  return { ...opened, page };
}

async function signInAs(page, name) {
  await button(page, 'Sign in').click();
  await page.locator('input[name=login]').fill(name);
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.getByRole('button', { name: 'Continue' }).click();
}

test('somebody signs in, has no workspace, and makes one', async () => {
  const { page, context } = await open();
  await signInAs(page, 'ada');
  await page.getByText('You are in no workspace yet').waitFor();
  await page.locator('code').filter({ hasText: 'usr_' }).waitFor();
  assert.equal(new URL(page.url()).search, '', 'no code stays in the address');
  await link(page, 'New workspace').click();
  await field(page, 'Display name').fill("Ada's workshop");
  await field(page, 'Slug').fill('workshop');
  await button(page, 'Create').click();
  await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor();
  await settle(page);
  assert.equal(await table(page, 'Members').locator('tbody tr').count(), 1);
  // The last owner stays.
  await page.getByRole('row').filter({ hasText: 'usr_' }).getByRole('combobox').selectOption('viewer');
  await page.locator('[role="alert"][data-code="last_owner"]').waitFor();
  await context.close();
});

test('an answer of another attempt, of another issuer, or used twice signs nobody in', async () => {
  const { page, context, visit } = await open();
  const refused = () => page.locator('[role="alert"][data-code="sign_in_failed"]').waitFor();
  await visit(`/callback?code=stolen&state=other&iss=${encodeURIComponent(issuer)}`);
  await refused();
  await visit('/login');
  let answer;
  page.on('request', (request) => {
    if (request.url().startsWith(`${service.origin}/callback?`)) answer ??= request.url();
  });
  await page.addInitScript(() => {
    const url = new URL(location.href);
    if (url.pathname === '/callback' && url.searchParams.has('iss')) {
      url.searchParams.set('iss', 'http://127.0.0.1:1');
      history.replaceState(null, '', url);
    }
  });
  await signInAs(page, 'eve');
  await refused();
  await page.goto(answer);
  await refused();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('svc-session')), null);
  await context.close();
});

test('a token that ends in the middle of a draft leads through the issuer and back', async () => {
  const { page, context, allow } = await open();
  allow('401');
  await signInAs(page, 'ada');
  await page.getByRole('heading', { level: 1, name: 'Projects' }).waitFor();
  await settle(page);
  await link(page, 'New project').click();
  await field(page, 'Name').fill('Kept');
  await field(page, 'Description').fill('Typed before the token ended');
  await page.route('**/api/v1/projects', (route) => route.fulfill({ status: 401, json: { code: 'unauthorized', title: 'Unauthorized', status: 401, detail: 'It has ended.' } }), { times: 1 });
  await button(page, 'Create').click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  await button(page, 'Sign in').click();
  // The issuer still knows who this is.
  await page.getByRole('heading', { level: 1, name: 'New project' }).waitFor();
  await settle(page);
  assert.equal(await field(page, 'Name').inputValue(), 'Kept');
  assert.equal(await field(page, 'Description').inputValue(), 'Typed before the token ended');
  await button(page, 'Create').click();
  await page.getByRole('heading', { level: 1, name: 'Kept' }).waitFor();
  await context.close();
});

test('an issuer that is away is told', async () => {
  const { page, context } = await open();
  await page.route(`${issuer}/token`, (route) => route.abort());
  await signInAs(page, 'ada');
  await page.getByText('The issuer does not answer').waitFor();
  await context.close();
});

