// The first module of the console, which shows the screen of an address.
document.querySelector('main').removeAttribute('aria-busy');
