// What holds for every page, found out in the page itself.

/** Answers what is wrong with a page, as sentences; none is the aim. */
export async function inspect(page, { language = 'en' } = {}) {
  const found = await page.evaluate(examine);
  const wrong = [];
  if (!found.title) wrong.push('the page has no title');
  if (found.language !== language) wrong.push(`its language is ${JSON.stringify(found.language)}`);
  if (found.mains !== 1) wrong.push(`it has ${found.mains} main landmarks`);
  if (found.headings[0] !== 1) wrong.push(`its first heading is of level ${found.headings[0]}`);
  if (!found.viewport.includes('width=device-width')) wrong.push('it has no viewport');
  if (found.wider > 0) wrong.push(`it is ${found.wider} px wider than the window: ${found.widest.join(', ')}`);
  for (const text of found.faint) {
    wrong.push(`contrast ${text.ratio.toFixed(2)} of ${text.where} ${JSON.stringify(text.text)}: ${text.colours}`);
  }
  for (const control of found.nameless) wrong.push(`a control without a name: ${control}`);
  return wrong;
}

// Runs in the page, so it stands alone.
function examine() {
  const describe = (element) => {
    const classes = [...element.classList].map((name) => `.${name}`).join('');
    return element.localName + classes;
  };

  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a));
  const ground = (() => {
    const probe = document.createElement('div');
    probe.style.background = 'Canvas';
    document.documentElement.append(probe);
    const colour = rgba(getComputedStyle(probe).backgroundColor).slice(0, 3);
    probe.remove();
    return colour;
  })();
  const backgrounds = new Map();
  const background = (element) => {
    if (!element) return ground;
    if (!backgrounds.has(element)) {
      const style = getComputedStyle(element);
      const below = background(element.parentElement);
      backgrounds.set(element, over(rgba(style.backgroundColor), below));
    }
    return backgrounds.get(element);
  };
  const opacity = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  const faint = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest('svg, noscript, style, script')) continue;
    const style = getComputedStyle(element);
    const behind = background(element);
    const [r, g, b, a] = rgba(style.color);
    const front = over([r, g, b, a * opacity(element)], behind);
    const ratio = contrast(front, behind);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio >= (large ? 3 : 4.5)) continue;
    const where = describe(element);
    const colours = `${style.color} on rgb(${behind.map(Math.round)})`;
    faint.set(where + colours, { ratio, where, colours, text: text.data.trim().slice(0, 30) });
  }

  const root = document.documentElement;
  const wider = Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth;
  const widest = [];
  if (wider > 0) {
    for (const element of document.querySelectorAll('body *')) {
      if (element.getBoundingClientRect().right > root.clientWidth + 1) widest.push(describe(element));
    }
  }
  const nameless = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), summary')]
    .filter((control) => control.checkVisibility())
    .filter((control) => {
      const labels = [...(control.labels ?? [])].map((label) => label.textContent).join('');
      const name = control.textContent + labels + (control.getAttribute('aria-label') ?? '') + control.title;
      // A task's box is named by the text that it stands in.
      return !name.trim() && !(control.disabled && control.closest('li'));
    })
    .map((control) => control.outerHTML.slice(0, 80));

  return {
    title: document.title.trim(),
    language: root.lang,
    mains: document.querySelectorAll('main, [role=main]').length,
    headings: [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((heading) => Number(heading.localName[1])),
    viewport: document.querySelector('meta[name=viewport]')?.content ?? '',
    wider,
    widest: widest.slice(0, 5),
    faint: [...faint.values()],
    nameless,
  };
}

/** Answers what paper would lose of a page: text that is cut off, or that stands out badly from white. */
export async function inspectPrint(page) {
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const lost = await page.evaluate(() =>
    [...document.querySelectorAll('body *')]
      .filter((element) => element.checkVisibility() && element.textContent.trim())
      .filter((element) => {
        const { overflowX, overflowY } = getComputedStyle(element);
        const cut = (way, inner, outer) => way !== 'visible' && inner > outer + 1;
        return (
          cut(overflowX, element.scrollWidth, element.clientWidth) ||
          cut(overflowY, element.scrollHeight, element.clientHeight)
        );
      })
      .map((element) => `cut off on paper: ${element.localName}.${element.className}`),
  );
  const dark = await page.evaluate(() => {
    const large = [document.documentElement, document.body, ...document.querySelectorAll('main')];
    const colours = large.map((element) => getComputedStyle(element).backgroundColor);
    return colours.filter((colour) => !/^rgba\(.*, 0\)$|^rgb\(255, 255, 255\)$/.test(colour));
  });
  return [...lost, ...dark.map((colour) => `paper is ${colour}`)];
}
