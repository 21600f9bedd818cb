// Bars over time, as SVG, each with the table that says the same.
import { useId } from 'preact/hooks';
import { html, Table } from 'app/ui.js';

const [wide, high] = [600, 120];
const numbers = new Intl.NumberFormat();

/** Draws bars; `bars` are `{label, value, tone?}`. The table below has the same numbers for who does not see the drawing. */
export function Bars({ title, bars, head, format = numbers.format }) {
  const id = useId();
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const step = wide / bars.length;
  const rows = bars.map((bar, at) => html`<tr key=${at}><th scope="row">${bar.label}</th><td class="number">${format(bar.value)}</td></tr>`);
  return html`<figure class="plot">
    <svg viewBox=${`0 0 ${wide} ${high}`} role="img" aria-labelledby=${id} preserveAspectRatio="none">
      <title id=${id}>${title}: at most ${format(most)}</title>
      ${bars.map((bar, at) => {
        const tall = bar.value ? Math.max(2, (bar.value / most) * (high - 4)) : 1;
        return html`<rect key=${at} class=${`bar ${bar.tone ?? ''}`} x=${at * step + step * 0.1} width=${step * 0.8} y=${high - tall} height=${tall} />`;
      })}
    </svg>
    <div class="ends" aria-hidden="true"><span>${bars[0]?.label}</span><span>${title}</span><span>${bars.at(-1)?.label}</span></div>
    <details><summary>${title}, as a table</summary><${Table} caption=${title} columns=${head} numbers=${[1]} rows=${rows} class="tall" /></details>
  </figure>`;
}
