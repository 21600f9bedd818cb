// Text that is typed.

/** A number of bytes as people say it. */
function size(bytes) {
  const kilo = bytes / 1024;
  return kilo < 1000 ? `${Math.ceil(kilo)} KB` : `${(Math.ceil((kilo / 1024) * 10) / 10).toString()} MB`;
}

/** Why it cannot be published as it is, if it cannot. */
function tooLong() {
  if (held) return text('password') || field('one_time').checked ? 'Only a page can have a password or be read once: files cannot.' : '';
  if (field('content').value.length * 6 < most) return '';
  const bytes = new TextEncoder().encode(JSON.stringify(wanted())).length;
  return bytes > most ? `A page may have ${size(most)}; this has ${size(bytes)}.` : '';
}

function wanted() {
  const share = held ? { ...held.share } : { type: field('type').value, content: field('content').value };
  for (const name of ['title', 'name']) if (text(name)) share[name] = text(name);
  if (field('expires_in').value) share.expires_in = Number(field('expires_in').value);
  if (field('password').value) share.password = field('password').value;
  if (field('one_time').checked) share.one_time = true;
  return share;
}

function changed() {
  fail(tooLong());
  later();
  if (held) return;
  const { password, ...draft } = wanted();
  drafts.set(draft.content.trim() ? draft : null);
}

form.addEventListener('input', ({ target }) => {
  if (target.name === 'type') {
    chosen = true;
    element('guess').textContent = '';
  }
  if (target.name === 'content') {
    if (!target.value.trim()) chosen = false;
    guessed();
  }
  if (target.name) changed();
});
