// Deleting, and the shares of this browser.

const live = () => shares.get().filter(({ expires_at }) => Date.parse(expires_at) > Date.now());

async function remove({ id, delete_token: token }, complain) {
  try {
    const answer = await call(`/api/v1/deploy/${id}`, 'DELETE', { token });
    // Of what nobody knows any more there is nothing to delete.
    if (!answer.ok && answer.status !== 404) return complain((await problem(answer)).said);
  } catch {
    return complain(unreachable);
  }
  shares.set(live().filter((other) => other.id !== id));
  if (published?.id === id) result.hidden = true;
  list();
  say('Deleted');
  return true;
}

/** Asks once more in the button itself. */
function deletes(button, share) {
  let sure = false;
  button.addEventListener('click', async () => {
    if (!sure) {
      sure = true;
      button.textContent = 'Really delete?';
      setTimeout(() => {
        sure = false;
        button.textContent = 'Delete';
      }, 4000);
      return;
    }
    const heading = element('mine');
    if (await remove(share(), (words) => (button.textContent = words))) (heading.closest('section').hidden ? field('content') : heading).focus();
  });
}

function row(share) {
  const item = document.createElement('li');
  const link = document.createElement(share.once ? 'span' : 'a');
  link.textContent = share.title === 'Untitled' ? new URL(share.url).pathname.slice(1) : share.title;
  if (!share.once) Object.assign(link, { href: share.url, target: '_blank', rel: 'noopener' });
  const end = document.createElement('span');
  end.className = 'soft';
  end.append(share.once ? 'Opens once. ' : '', 'Expires ', time(share.expires_at));
  const button = document.createElement('button');
  Object.assign(button, { type: 'button', className: 'plain', textContent: 'Delete' });
  link.id = `share-${share.id}`;
  button.setAttribute('aria-describedby', link.id);
  deletes(button, () => share);
  item.append(link, end, button);
  return item;
}

function list() {
  const all = live();
  element('mine').closest('section').hidden = !all.length;
  element('shares').replaceChildren(...all.map(row));
}

deletes(element('delete'), () => published);
addEventListener('storage', list);
