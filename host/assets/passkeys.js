// Asks the browser for a passkey when a form is sent, and sends its answer as that form.
'use strict';
(() => {
  // A little less than the time for which challenges are valid.
  const VALID_MS = 290000;
  const opened = Date.now();
  const wrong = document.getElementById('wrong');
  const say = (text) => {
    wrong.textContent = text;
  };
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0));
  const toText = (buffer) => {
    let letters = '';
    for (const byte of new Uint8Array(buffer)) letters += String.fromCharCode(byte);
    return btoa(letters).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };
  const REASONS = {
    InvalidStateError: 'This device has a passkey of yours already: sign in with it.',
    NotSupportedError: 'This device has no passkeys of a kind that is taken here.',
    SecurityError: 'The browser does not trust the address of this page with passkeys.',
  };

  async function create(options, name) {
    options.challenge = toBytes(options.challenge);
    options.user.id = toBytes(options.user.id);
    if (name) options.user.name = options.user.displayName = name;
    for (const known of options.excludeCredentials) known.id = toBytes(known.id);
    const { rawId, response } = await navigator.credentials.create({ publicKey: options });
    return {
      rawId: toText(rawId),
      response: {
        clientDataJSON: toText(response.clientDataJSON),
        attestationObject: toText(response.attestationObject),
      },
    };
  }

  async function get(options) {
    options.challenge = toBytes(options.challenge);
    const { rawId, response } = await navigator.credentials.get({ publicKey: options });
    return {
      rawId: toText(rawId),
      response: {
        clientDataJSON: toText(response.clientDataJSON),
        authenticatorData: toText(response.authenticatorData),
        signature: toText(response.signature),
        userHandle: response.userHandle && toText(response.userHandle),
      },
    };
  }

  async function ask(form) {
    if (!window.PublicKeyCredential) return say('This browser has no passkeys.');
    // The page is asked for again, with challenges that are valid.
    if (Date.now() - opened > VALID_MS) return location.replace(form.action);
    const buttons = document.querySelectorAll('button');
    for (const button of buttons) button.disabled = true;
    say('');
    try {
      const options = JSON.parse(form.dataset.options);
      const name = form.elements.name && form.elements.name.value.trim();
      const credential = await (form.dataset.passkey === 'create' ? create(options, name) : get(options));
      form.elements.credential.value = JSON.stringify(credential);
      form.submit();
    } catch (error) {
      say(REASONS[error.name] || 'Nothing has happened: the prompt was closed, or waited too long. Try again.');
      for (const button of buttons) button.disabled = false;
    }
  }

  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      ask(form);
    });
  }
  // A page that comes back from the browser's memory has buttons that wait.
  window.addEventListener('pageshow', (event) => event.persisted && location.reload());
})();
