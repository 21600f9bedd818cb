// Visitors who sign in with passkeys, by the browser's virtual devices: create, sign in, a second device, removal, and a prompt that fails.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, startBrowser } from './lib/browser.mjs';
import { startSvc } from './lib/svc.mjs';

const content = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Book</title><p id="who">…</p><button>Sign in</button><script>
document.querySelector('button').onclick = () => svc.auth.login();
svc.auth.user().then((user) => { who.textContent = user ? 'Hello ' + user.name : 'Hello stranger'; });
</script>`;

let browser, place, book;

before(async () => {
  browser = await startBrowser();
  place = await startSvc({ tables: ['[sign_in]', 'passkeys = true'] });
  const ask = await place.owner('acme');
  const project = (await ask('POST', '', { name: 'House' })).id;
  book = (await ask('POST', `/${project}/frontends`, { type: 'html', content, requested_slug: 'book' })).url;
});

after(async () => {
  await browser?.close();
  await place?.stop();
});

/** Opens the page in a browser whose devices the test has. */
async function openWithDevices() {
  const { page } = await openPage(browser, new URL(book).origin);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  };
  const addDevice = async () => (await cdp.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
  return { page, cdp, addDevice };
}

/** Signs in as somebody new. */
async function create(page, name) {
  await page.goto(`${book}?page=1`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.waitForURL(`${book}?page=1`);
  await page.getByText(`Hello ${name}`).waitFor();
}

test('a passkey is created, used, joined by a second one, and removed', async () => {
  const { page, cdp, addDevice } = await openWithDevices();
  const first = await addDevice();
  await create(page, 'Ada');
  const user = await page.evaluate(() => svc.auth.user());
  assert.equal(user.provider, 'passkey');
  await page.evaluate(() => svc.auth.logout());
  await page.reload();
  await page.getByText('Hello stranger').waitFor();
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByText('Hello Ada').waitFor();
  assert.equal((await page.evaluate(() => svc.auth.user())).id, user.id);

  await page.goto(`${book}/auth/passkeys`);
  await page.getByRole('heading', { name: 'Passkeys' }).waitFor();
  assert.doesNotMatch(page.url(), /ticket=/);
  const passkeys = page.getByRole('listitem');
  assert.equal(await passkeys.count(), 1);
  // The only one stays.
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByText('your only passkey').waitFor();
  await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: first });
  await addDevice();
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('button', { name: 'Remove' }).nth(1).waitFor();
  await page.getByRole('button', { name: 'Remove' }).first().click();
  await page.getByRole('button', { name: 'Remove' }).nth(1).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Back to the page' }).click();
  await page.getByText('Hello Ada').waitFor();
});

test('a prompt that fails leaves the page as it was, and says so', async () => {
  const { page, cdp, addDevice } = await openWithDevices();
  const authenticatorId = await addDevice();
  await page.goto(book);
  await page.getByRole('button', { name: 'Sign in' }).click();
  // There is no passkey yet.
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByText('Nothing has happened').waitFor();
  // The device does not know its user.
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
  await page.getByLabel('Your name').fill('Eve');
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByText('Nothing has happened').waitFor();
  await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByText('Hello Eve').waitFor();
  await page.goto(`${book}/auth/login`);
  await page.getByRole('link', { name: 'Back to the page' }).click();
  await page.waitForURL(`${book}?auth_error=access_denied`);
});

test('a page of a project cannot ask for passkeys itself', async () => {
  const { page, addDevice } = await openWithDevices();
  await addDevice();
  await create(page, 'Ada');
  const said = await page.evaluate(() =>
    navigator.credentials
      .get({ publicKey: { challenge: new Uint8Array(32), rpId: 'localhost', userVerification: 'required' } })
      .then(() => 'answered', (error) => error.name),
  );
  assert.equal(said, 'NotAllowedError');
});

test('a page that was open for too long asks with new challenges', async () => {
  const { page, addDevice } = await openWithDevices();
  await addDevice();
  await create(page, 'Ada');
  await page.evaluate(() => svc.auth.logout());
  await page.clock.install();
  await page.goto(`${book}/auth/login`);
  const challenge = () => page.locator('#request input[name=challenge]').inputValue();
  const first = await challenge();
  await page.clock.fastForward('05:00');
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.waitForFunction((before) => document.querySelector('#request input[name=challenge]').value !== before, first);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByText('Hello Ada').waitFor();
});

test('without scripts the page says what is missing', async () => {
  const { page } = await openPage(browser, new URL(book).origin, { scripts: false });
  await page.goto(`${book}/auth/login`);
  // Chromium shows what is for pages without scripts where its settings forbid them, and not where a test does.
  assert.match(await page.content(), /<noscript>.*Allow scripts on this page/s);
});
