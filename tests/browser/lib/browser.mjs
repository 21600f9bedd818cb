// Chromium, and what is watched in each of its pages.
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const shots = resolve(dirname(fileURLToPath(import.meta.url)), '../shots');

export const widths = [360, 1280];

/** Starts the browser that the system has, for which `hosts` are names of this machine. */
export function startBrowser({ hosts = [] } = {}) {
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join();
  return chromium.launch({
    executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...(rules ? [`--host-resolver-rules=${rules}`] : []),
    ],
  });
}

/**
 * Opens a page that writes down what must not happen: errors in the console, and requests to other hosts.
 * That a document itself is answered 401, 403 or 404 is in the console too, and is no mistake.
 */
export async function openPage(browser, origin, { width = 1280, scheme = 'light', scripts = true } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: width < 600 ? 740 : 900 },
    colorScheme: scheme,
    javaScriptEnabled: scripts,
    deviceScaleFactor: width < 600 ? 2 : 1,
    hasTouch: width < 600,
  });
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    const refused = /Failed to load resource: the server responded with a status of 4/.test(message.text());
    if (refused && message.location().url === page.url()) return;
    faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol === 'data:' || url.protocol === 'about:') return;
    if (url.origin !== origin) faults.push(`request to ${url.origin}`);
  });
  return { page, context, faults };
}

/** Keeps a picture of the whole page, to be looked at. */
export async function shoot(page, name) {
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}
