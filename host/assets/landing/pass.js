// Passing on. Without a secure origin there is no clipboard to write to, but there is a selection to copy.

async function copy(words, button, area) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    if (area.select) area.select();
    else getSelection().selectAllChildren(area);
    document.execCommand('copy');
  }
  const label = button.textContent;
  button.textContent = 'Copied';
  say('Copied');
  setTimeout(() => {
    button.textContent = label;
    say('');
  }, 2000);
}

element('copy').addEventListener('click', ({ target }) => copy(element('link').value, target, element('link')));
element('copy-secret').addEventListener('click', ({ target }) => copy(element('secret-text').value, target, element('secret-text')));
element('pass').hidden = !navigator.share;
element('pass').addEventListener('click', () => navigator.share({ url: published.url }).catch(() => {}));
for (const button of document.querySelectorAll('.snippet button')) {
  const area = button.closest('.snippet').querySelector('pre');
  button.hidden = false;
  button.addEventListener('click', () => copy(area.textContent.trimEnd(), button, area));
}

// Text that was typed before a reload, or kept by a browser that comes back to the page.
const draft = drafts.get();
if (draft && !field('content').value) {
  for (const [name, value] of Object.entries(draft)) {
    if (name === 'one_time') field(name).checked = value;
    else if (field(name)) field(name).value = value;
  }
  chosen = true;
}
if (field('content').value) later();
list();
