// A key that was just made: shown once, to be copied.
import { useState } from 'preact/hooks';
import { Button, copy, html } from 'app/ui.js';

export const ends = [
  ['', 'Never'],
  ['3600', 'In an hour'],
  ['86400', 'In a day'],
  ['604800', 'In a week'],
  ['2592000', 'In 30 days'],
  ['31536000', 'In a year'],
];

export function Credential({ made, onClose }) {
  const [isShown, show] = useState(false);
  return html`<div class="card made" role="group" aria-label="The new key"><p><strong>Copy it now: it is not shown again.</strong> Who has it may do what a ${made.role} may.</p>
    <div class="row"><div class="field wide"><label for="credential">Credential</label><input id="credential" class="code" type=${isShown ? 'text' : 'password'} readonly autocomplete="off" value=${made.credential} onFocus=${(event) => event.currentTarget.select()} /></div>
    <${Button} onClick=${() => copy(made.credential, 'the credential')}>Copy</${Button}><${Button} aria-pressed=${String(isShown)} onClick=${() => show(!isShown)}>Show it</${Button}><${Button} onClick=${onClose}>Done</${Button}></div></div>`;
}

