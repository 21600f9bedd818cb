  // Each block of code of a page of Markdown is copied by a button, which is there where this script is.
  const STYLES = `.copied{position:relative}
.copied>button{position:absolute;top:.4rem;right:.4rem;min-height:1.75rem;padding:.1rem .6rem;font:.8125rem/1 var(--sans);
color:var(--text);background:var(--bg);border:1px solid var(--line);border-radius:.3rem;cursor:pointer}
@media (hover:hover){.copied:not(:hover,:focus-within)>button{opacity:0}}
@media print{.copied>button{display:none}}`;
  const copies = (region) => {
    const pre = region.querySelector('pre');
    const around = document.createElement('div');
    const button = document.createElement('button');
    around.className = 'copied';
    Object.assign(button, { type: 'button', lang: 'en' });
    const say = (word) => {
      button.textContent = word;
      button.setAttribute('aria-label', `${word}: ${region.getAttribute('aria-label')}`);
    };
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
      } catch {
        // Without a secure origin there is no clipboard to write to, but there is a selection to copy.
        getSelection().selectAllChildren(pre);
        document.execCommand('copy');
      }
      say('Copied');
      setTimeout(() => say('Copy'), 2000);
    });
    say('Copy');
    // Nothing moves: what is around it takes its place, and keeps its distance.
    around.style.margin = getComputedStyle(region).margin;
    region.style.margin = 0;
    region.replaceWith(around);
    around.append(region, button);
  };
  addEventListener('DOMContentLoaded', () => {
    const regions = document.querySelectorAll('.markdown>main .code[role=region]');
    if (!regions.length) return;
    document.head.append(Object.assign(document.createElement('style'), { textContent: STYLES }));
    regions.forEach(copies);
  });
