// What the labels of a drawing are like, found out in the page itself.

/** Runs in the page: the labels of its drawing with their contrasts, and those that leave their shapes. */
export function examineLabels() {
  const svg = document.querySelector('figure > svg');
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', {
    willReadFrequently: true,
  });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = ([red, green, blue, alpha], below) =>
    [red, green, blue].map((part, at) => part * alpha + below[at] * (1 - alpha));
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const fill = (element) => {
    const style = getComputedStyle(element);
    const [red, green, blue, alpha] = style.fill === 'none' ? [0, 0, 0, 0] : rgba(style.fill);
    return [red, green, blue, alpha * Number(style.fillOpacity) * Number(style.opacity)];
  };
  // A text may bring a rim of its own to be read on, or stand on the mark that begins a line.
  const rimOf = (text) => {
    const style = getComputedStyle(text);
    if (style.paintOrder.startsWith('stroke') && Number.parseFloat(style.strokeWidth) >= 3) return rgba(style.stroke).slice(0, 3);
    const mark = text.previousElementSibling && getComputedStyle(text.previousElementSibling).markerStart;
    const shape = mark?.startsWith('url(') && svg.querySelector(`${mark.slice(5, -2)} > :is(circle, rect, path)`);
    return shape ? fill(shape).slice(0, 3) : undefined;
  };
  const box = (element) => element.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll('rect, circle, ellipse, polygon, path')].filter(
    (shape) => !shape.closest('defs, marker, clipPath, mask'),
  );
  const covers = (shape, x, y) => {
    const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
    return shape.isPointInFill(point);
  };
  const isBefore = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  const ground = rgba(getComputedStyle(svg.closest('figure')).backgroundColor).slice(0, 3);

  const labels = [];
  const clipped = [];
  const view = box(svg);
  for (const text of svg.querySelectorAll('text')) {
    const said = text.textContent.trim();
    const place = box(text);
    if (!said || place.width === 0) continue;
    const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
    let behind = ground;
    for (const shape of shapes) {
      if (isBefore(shape, text) && covers(shape, x, y)) behind = over(fill(shape), behind);
    }
    const rim = rimOf(text);
    if (rim) behind = rim;
    const front = over(fill(text.querySelector('tspan') ?? text), behind);
    const [low, high] = [luminance(front), luminance(behind)].sort((one, other) => one - other);
    labels.push({ text: said, ratio: (high + 0.05) / (low + 0.05) });

    const scale = view.width / svg.viewBox.baseVal.width;
    const slack = 2 * scale;
    if (place.left < view.left - slack || place.right > view.right + slack) clipped.push(`${said}: beyond the drawing`);
    const node = text.closest('.m-node');
    const around = node && [...node.querySelectorAll('rect, circle, ellipse, polygon, path')].map(box);
    if (!around?.length) continue;
    const left = Math.min(...around.map((side) => side.left));
    const right = Math.max(...around.map((side) => side.right));
    if (place.left < left - slack || place.right > right + slack) clipped.push(`${said}: beyond its shape`);
  }
  return { labels, clipped };
}
