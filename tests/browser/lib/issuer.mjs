// A certified OpenID Connect provider on this machine, at which everybody is Ada.
import { once } from 'node:events';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

/**
 * Starts a provider; `tables` are the lines of svc's configuration that name it as `acme`. It answers once `serve` has the server that
 * it leads back to.
 */
export async function startIssuer() {
  let answer;
  const server = createServer((request, response) => answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://localhost:${server.address().port}`;
  return {
    tables: ['[[providers]]', 'name = "acme"', `issuer = "${issuer}"`, 'client_id = "me"', 'client_secret = "sesame"'],
    serve(svc) {
      const provider = new Provider(issuer, {
        clients: [{ client_id: 'me', client_secret: 'sesame', redirect_uris: [`${svc.url}/_svc/auth/callback/acme`] }],
        claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'locale'] },
        findAccount: (_, id) => ({
          accountId: id,
          claims: () => ({ sub: id, name: 'Ada', email: 'ada@example.com', email_verified: true, locale: 'de' }),
        }),
        cookies: { keys: ['a key for tests'] },
      });
      answer = provider.callback();
    },
    stop: () => server.close(),
  };
}

/** Signs in on the pages of the provider, which a page has been led to. */
export async function signInAtIssuer(page) {
  await page.locator('input[name=login]').fill('ada');
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.getByRole('button', { name: 'Continue' }).click();
}
