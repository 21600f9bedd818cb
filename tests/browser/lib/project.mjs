// A server with one page of a project, and the browser that looks at it.
import { startBrowser } from './browser.mjs';
import { startSvc } from './svc.mjs';

/** Starts a server whose project `name` has this page, and a browser; `stop` ends both. */
export async function startWithPage(name, page) {
  const [svc, browser] = await Promise.all([startSvc(), startBrowser()]);
  const stop = async () => {
    await browser.close();
    await svc.stop();
  };
  try {
    const ask = await svc.owner('acme');
    const { id } = await ask('POST', '', { name });
    const frontend = await ask('POST', `/${id}/frontends`, page);
    return { svc, browser, frontend, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
