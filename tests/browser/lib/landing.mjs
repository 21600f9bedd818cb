// The landing page of a server in a browser, as its tests use it.
import { openPage, startBrowser } from './browser.mjs';
import { startSvc } from './svc.mjs';

export const WELCOME = 'welcome.localhost';

/** Starts a server with a landing host, and a browser in which `open` opens landing pages. */
export async function startLanding() {
  const [svc, browser] = await Promise.all([startSvc({ options: ['--landing-host', WELCOME] }), startBrowser()]);
  return {
    svc,
    browser,
    open: (options) => open(browser, { server: svc, ...options }),
    async stop() {
      await browser.close();
      await svc.stop();
    },
  };
}

/** Opens the landing page of a server. */
async function open(browser, { server, url = server.url, origin = server.url, ...options }) {
  const opened = await openPage(browser, origin, options);
  const { page } = opened;
  await page.goto(`${url}/`);
  return {
    ...opened,
    content: page.getByLabel('Content'),
    preview: page.frameLocator('iframe:not(.coming)'),
    publish: page.getByRole('button', { name: 'Publish' }),
    link: page.getByLabel('Link to the page'),
    choose: (type) => page.getByLabel(type, { exact: true }).check(),
    options: () => page.locator('.options>summary').click(),
  };
}
