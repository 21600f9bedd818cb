// The contrast of every text that is shown, measured in the page itself: axe-core gives up on what scrolls.

/** Answers the texts of a page that stand out from what is behind them by less than 4.5. */
export function inspectContrast(page) {
  return page.evaluate(measure);
}

// Runs in the page, so it stands alone.
function measure() {
  const describe = (element) => element.localName + [...element.classList].map((name) => `.${name}`).join('');

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
    if (ratio >= 4.5) continue;
    const where = describe(element);
    const colours = `${style.color} on rgb(${behind.map(Math.round)})`;
    faint.set(where + colours, { ratio, where, colours, text: text.data.trim().slice(0, 30) });
  }
  return [...faint.values()].map(
    ({ ratio, where, colours, text }) => `contrast ${ratio.toFixed(2)} of ${where} ${JSON.stringify(text)}: ${colours}`,
  );
}
