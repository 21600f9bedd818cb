// Publishing.

const send = element('send');
const wrong = element('wrong');
const result = element('result');
let sending = false;
let published;

function fail(said) {
  if (wrong.textContent !== said) wrong.textContent = said;
}

/** A time as people write it where the reader lives. */
function time(at) {
  const end = document.createElement('time');
  end.dateTime = at;
  end.textContent = new Date(at).toLocaleString(undefined, { dateStyle: 'long', timeStyle: 'short' });
  return end;
}

function succeed(share, asked) {
  published = share;
  element('link').value = share.url;
  element('open').href = share.url;
  element('open').hidden = Boolean(asked.one_time);
  element('once').hidden = !asked.one_time;
  element('expires').replaceChildren(time(share.expires_at));
  element('secret').hidden = !asked.password;
  element('secret-text').value = asked.password ?? '';
  const renamed = asked.name && asked.name !== share.slug;
  element('renamed').textContent = renamed ? `“${asked.name}” is not free, so it is “${share.slug}”.` : '';
  const code = Object.assign(document.createElement('img'), { width: 148, height: 148, alt: 'The link as a QR code' });
  code.src = `${api}/_svc/qr/${share.slug}`;
  element('qr').replaceChildren(code);
  result.hidden = false;
  element('published').focus();
  const { id, url, title, expires_at, delete_token } = share;
  shares.set([{ id, url, title, expires_at, delete_token, once: Boolean(asked.one_time) }, ...live()]);
  list();
  drafts.set(null);
}

const waiting = Object.assign(document.createElement('p'), { className: 'soft', role: 'status' });
send.after(waiting);

/** Says how far a server is that still prepares its renderer, for as long as publishing waits for it. */
async function tellPreparing() {
  let preparing = true;
  while (sending && preparing) {
    await new Promise((wake) => setTimeout(wake, 1000));
    const answer = await fetch(`${api}/readyz`).catch(() => undefined);
    preparing = answer?.status === 503;
    const said = preparing ? await answer.text().catch(() => '') : '';
    waiting.textContent = sending && said ? `The server is still ${said.trim()}.` : '';
  }
  waiting.textContent = '';
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (sending) return;
  result.hidden = true;
  const share = wanted();
  if (!held && !share.content.trim()) {
    fail('There is nothing to publish yet: write something, or open a file.');
    field('content').focus();
    return;
  }
  if (tooLong()) return fail(tooLong());
  sending = true;
  send.setAttribute('aria-disabled', 'true');
  fail('');
  tellPreparing();
  try {
    const answer = await (held?.file ? upload(held.file, share) : call('/api/v1/deploy', 'POST', { body: share }));
    if (answer.ok) succeed(await answer.json(), share);
    else fail((await problem(answer)).said);
  } catch {
    fail(unreachable);
  } finally {
    sending = false;
    send.removeAttribute('aria-disabled');
  }
});
